"""Kernels with ``tle.gpu`` as kernels with ``tle.dsa``: Triton to Triton, for ``migrate --to tle-dsa``."""
