"""One file per transformation; ``pipelines.py`` is the only place that knows their order."""
