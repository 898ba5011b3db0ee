"""What must hold of a Developer-mode kernel: limits of the compiler's passes, hand-overs, capacity, self-check."""
