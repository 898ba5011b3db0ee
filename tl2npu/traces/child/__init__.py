"""Stand-alone code of the recorder: the interpreter that runs it needs NumPy, and what the script needs; no tl2npu."""
