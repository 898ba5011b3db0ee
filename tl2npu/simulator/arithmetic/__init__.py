"""How numbers are computed: rounding like the element types, or exactly in a ring, or not at all."""
