"""Evaluates a Triton kernel on NumPy arrays, to see whether its translation gives the same values."""
