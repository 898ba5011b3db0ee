"""From the Python of a prim_func to the traced program."""
