"""What kernels do where they are run for real: an NPU, or CANN's simulator of one."""

from __future__ import annotations

from tl2npu.results import Safety, Severity

# fmt: off
ROWS: tuple[tuple[str, str, Severity, Safety, str], ...] = (
    ("TL940", "device-fault", "error", "display-only",
     "read the device log; `--sanitize memcheck` finds accesses out of bounds"),
    ("TL941", "device-hang", "error", "display-only",
     "look for cores that wait for each other; `--sanitize synccheck` finds flags without a partner"),
    ("TL942", "compilation-failed", "error", "display-only",
     "see what the compiler says with `--backend compile`"),
    ("TL943", "runs-differ", "error", "display-only",
     "run it with `--sanitize racecheck`, and look at the synchronisation of the tensor that is named"),
    ("TL944", "not-a-number", "error", "display-only",
     "look for data that is read before it is written, and for divisions and logarithms of 0"),
    ("TL945", "sanitizer-finding", "error", "display-only",
     "correct the access that msSanitizer names"),
    ("TL946", "nothing-measured", "warning", "display-only",
     "run `msprof op` by hand, and see what it refuses"),
)
# fmt: on
