"""Flags in a core and between the cores."""
