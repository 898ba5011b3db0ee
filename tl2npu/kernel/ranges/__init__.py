"""What is known of the integers of a kernel: ranges, conditions, how often a loop runs."""
