"""The fixes of doctor: each repairs one subject without loss."""
