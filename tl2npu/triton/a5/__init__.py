"""Kernels of triton-ascend for the cores of A5: cube and vector scopes, events and buffers on the chip."""
