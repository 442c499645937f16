"""Handoffs: give open work to another agent, by reference, and accept it. May import claims and the packages below it."""
