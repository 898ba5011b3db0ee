"""From the traced program to one program per core: what the Ascend compiler does between text and machine."""
