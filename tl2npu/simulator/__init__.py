"""Executes TileLang kernels on the CPU.

Data flows one way: ``frontend`` traces the Python of a kernel into ``ir``; ``lowering`` applies to it what the Ascend
compiler would do; ``machine`` turns the result into one Python generator per core and runs it on NumPy arrays with
the meanings in ``operators``, counted by an ``arithmetic``. ``standin`` is the ``tilelang`` package that a user's
script sees.
"""
