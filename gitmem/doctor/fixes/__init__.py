"""The fixes of doctor: each repairs one thing without losing anything."""
