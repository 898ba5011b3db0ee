"""From the tile IR to source text."""
