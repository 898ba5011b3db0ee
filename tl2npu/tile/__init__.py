"""The tile IR: what a kernel computes on tiles, as frozen values that no dialect owns."""
