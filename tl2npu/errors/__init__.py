"""Codes and messages of the Ascend stack, and what they mean: for ``rule --error``, ``explain-log``, the backends."""
