"""Text <-> syntax tree: reading, the index, names, edits, layout, diffs, writing. Knows nothing of kernels."""
