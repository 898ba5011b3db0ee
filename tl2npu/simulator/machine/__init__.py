"""Runs a lowered kernel: one generator per core, memory as NumPy arrays."""
