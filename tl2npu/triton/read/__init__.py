"""Triton source to the tile IR: an interpreter over abstract values."""
