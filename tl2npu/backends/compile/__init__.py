"""The installed compiler as a judge: a file's kernels are lowered in a child process (``child/lower.py``)."""
