"""A prim_func as the parser of the compiler reads it."""
