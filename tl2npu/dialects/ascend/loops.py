"""Loops. Under AUTO_CV_COMBINE a loop is kept on every core on which its body is not empty."""

from __future__ import annotations

from tl2npu.dialects.tables import table

OPERATORS = table("""
[loop both] tilelang/language/tir/ir.py
serial unroll vectorized parallel: start stop=None * annotations=None # one positional argument is the stop
[loop nowhere] tilelang/language/tir/ir.py
thread_binding: start stop=None thread=None * annotations=None # GPU only
[loop both] tilelang/language/tir/ir.py
grid: *extents # nested loops
[loop both] tilelang/language/parallel.py
Parallel: *extents coalesced_width=None # at most two extents; the stores of the body decide the core
[loop both] tilelang/language/pipeline.py
Pipelined: start stop=None num_stages=0 order=None stage=None sync=None group=None cross_interval=1 # one positional
    argument is the stop; the second is the stop, not num_stages
[loop both] tilelang/language/persistent.py
Persistent: domain wave_size index group_size=8 # a domain that the waves do not divide needs a loop_break, which
    AUTO_CV_COMBINE cannot read
""")
