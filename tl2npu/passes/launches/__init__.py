"""TL106, TL107: a prim_func with several launches, or a choice of several, becomes one for each launch."""
