"""TL110, TL111: dtype objects become strings."""
