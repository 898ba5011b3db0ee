"""The order of the passes, for each form that a kernel can take. Nothing else knows it.

One file for each language that is read; what a kernel does not need is not imported.
"""
