"""The checks of doctor: each examines one subject and reports findings."""
