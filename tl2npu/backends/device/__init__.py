"""Judges that run kernels: on an NPU, or on the simulator of CANN."""
