"""TL128, TL138, TL139: the grid, its tasks, and the loops that are pipelined."""
