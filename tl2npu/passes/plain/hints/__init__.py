"""TL115, TL116, TL129: hints for the GPU compiler, and layouts of global tensors."""
