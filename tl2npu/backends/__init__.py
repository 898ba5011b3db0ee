"""Judges of kernels that are not this project's simulator: the real compiler, a device, CANN's model of one."""
