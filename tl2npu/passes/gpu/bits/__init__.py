"""Elements that are made of the bits of packed integers."""
