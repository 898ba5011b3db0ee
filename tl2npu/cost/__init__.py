"""What a kernel costs on an NPU, estimated from its text: cycles of every pipe of one block, and what bounds it."""
