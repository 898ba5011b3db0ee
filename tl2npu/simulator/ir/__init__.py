"""The traced program: expressions, buffers, statements."""
