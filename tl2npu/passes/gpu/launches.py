"""TL10x: a prim_func with several launches becomes several prim_funcs."""
