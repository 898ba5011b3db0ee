"""Executes Triton scripts on the CPU by Triton's own interpreter (the extra ``triton``).

``hooked`` holds while a script runs: ``import triton`` then gives the installed Triton in its interpreter mode, with
the gaps of that mode filled (``repairs``, ``libdevice``), and every launch goes through ``execution``, which records
it as a ``Launch``. ``shim`` stands in for the language extensions of triton-ascend (``al``, ``bl``) and FlagTree
(``tle``), ``cores`` for the cores that run at the same time and the events between them.

Nothing here imports Triton before a script does.
"""
