"""Passes that write kernels for AscendNPU IR (`--to npuir`)."""
