"""TL180 to TL199: what an NPU has no counterpart for."""
