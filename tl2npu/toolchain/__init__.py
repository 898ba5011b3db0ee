"""What this machine has of the tools that compile and execute kernels: what ``tl2npu doctor`` finds."""
