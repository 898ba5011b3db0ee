"""Evaluates kernels on NumPy arrays, old and new, before a new one is written."""
