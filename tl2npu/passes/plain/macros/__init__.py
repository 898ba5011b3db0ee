"""TL117, TL118: macros, read in place."""
