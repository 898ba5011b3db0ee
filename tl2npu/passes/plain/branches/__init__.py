"""TL117, TL119, TL120: branches of Python, of the builder, and those that are known."""
