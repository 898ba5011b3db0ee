"""The passes, in packages by what they read; ``pipelines.py`` is the only place that knows their order."""
