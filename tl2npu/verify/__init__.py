"""Runs old and new kernels on the same inputs and compares.

``judge`` decides what is run and what it proves; ``process`` runs a ``job`` in a child process with a time budget;
the job loads a file (``loading``), records the launches of the old one (``recording``, ``drawing``) and repeats them
with the new one (``replay``, ``compare``). ``migration`` is ``migrate --verify``, ``script`` is ``run``.
"""
