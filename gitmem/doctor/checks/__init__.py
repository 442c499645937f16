"""The checks of doctor: each looks at one thing and reports what it finds."""
