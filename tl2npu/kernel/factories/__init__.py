"""Where kernels live in a file: factories, how they are compiled, and what they are called with."""
