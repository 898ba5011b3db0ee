"""Judges Triton kernels that stay Triton: what triton-ascend rejects, or does otherwise than a GPU."""
