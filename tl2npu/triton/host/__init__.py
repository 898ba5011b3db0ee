"""The Python around Triton kernels: what it passes to them, and how it calls what they become."""
