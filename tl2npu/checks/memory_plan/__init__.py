"""What a kernel needs of the on-chip memories, planned as the compiler plans it."""
