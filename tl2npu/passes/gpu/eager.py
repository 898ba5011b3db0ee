"""TL10x: eager kernels become a factory with a prim_func."""
