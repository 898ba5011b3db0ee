"""The barriers of warp groups: who waits, and how many threads arrive.

Sources: tilelang/language/builtin.py, tilelang/cuda/language/warpgroup.py (a35008a4).
"""

from __future__ import annotations

WARP_GROUP = 128
"""Threads of a warp group."""
WAITS = frozenset({"barrier_wait", "mbarrier_wait_parity"})
ARRIVALS = frozenset({"barrier_arrive", "mbarrier_arrive", "cp_async_barrier_noinc"})
"""Of every thread that comes to them."""
SINGLE_ARRIVALS = frozenset({"tcgen05_mma_arrive", "mbarrier_arrive_expect_tx"})
"""Of one thread for all."""
