"""An append-only set of lines on one ref. It moves lines; it does not know what they say."""
