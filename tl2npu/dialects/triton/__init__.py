"""Triton: what each name of ``triton.language`` means on tiles, or the code by which it is refused."""
