"""TL130 to TL137, TL159: where the values of a kernel live."""
