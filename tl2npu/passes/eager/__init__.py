"""TL102 to TL105: eager kernels become factories."""
