"""TL56x: kernels of triton-ascend for A5, and what keeps their cores from becoming one program."""

from __future__ import annotations

from tl2npu.results import Safety, Severity

# fmt: off
ROWS: tuple[tuple[str, str, Severity, Safety, str], ...] = (
    ("TL561", "unordered-buffer", "error", "display-only",
     "set an event behind the write, or behind the last read, and wait for it on the other core"),
    ("TL562", "unpaired-event", "error", "display-only",
     "set each event as often as the other core waits for it, in each turn of a loop"),
    ("TL563", "hand-pipeline", "error", "display-only",
     "write the serial kernel: one buffer and one event for each step"),
    ("TL564", "unequal-event-loops", "error", "display-only",
     "give the loops of both scopes the same range"),
    ("TL565", "unsupported-fixpipe", "error", "display-only",
     "use `NZ2ND` with `ROW_SPLIT` and convert the tile on the vector side"),
    ("TL566", "unclear-chip-buffer", "error", "display-only",
     "give each buffer the shape of its tile and copy it as a whole, each vector core its half of the rows"),
    ("TL567", "unequal-vector-cores", "error", "display-only",
     "let each vector core do the same work on its half of the rows"),
    ("TL568", "value-across-cores", "error", "display-only",
     "hand the value over in a buffer of `bl.alloc`"),
    ("TL569", "unsupported-ascend-operator", "error", "display-only",
     "use scopes, events and copies of tiles"),
)
# fmt: on
