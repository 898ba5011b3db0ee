"""Traces: recorded launches of kernels as files, for another machine to replay."""
