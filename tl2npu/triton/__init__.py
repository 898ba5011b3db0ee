"""Triton kernels as TileLang kernels for a GPU, which the rest of the program then takes to Ascend."""
