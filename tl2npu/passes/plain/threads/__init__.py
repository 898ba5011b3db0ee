"""TL109: code for single threads as loops over all threads of a block."""
