"""TL166 to TL171, TL178: elements that are moved between global memory and tiles become copies."""
