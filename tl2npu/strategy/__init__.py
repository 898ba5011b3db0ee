"""Decides which form a kernel takes: two vector cores or one, which memory, what stays the author's."""
