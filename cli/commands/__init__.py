"""One file a noun: read options, one operation, one rendering."""
