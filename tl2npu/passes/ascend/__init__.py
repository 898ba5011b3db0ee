"""From Expert kernels, and every other form of Ascend C kernels, to Developer mode: one file per transformation."""
