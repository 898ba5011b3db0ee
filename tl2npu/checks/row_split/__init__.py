"""What ``threads=2`` does to a kernel: buffers and loops that are cut in half by rows."""
