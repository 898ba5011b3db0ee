"""Memories of an NPU: which one a tile is in, its blocks of 32 bytes, and how long its value is wanted."""
