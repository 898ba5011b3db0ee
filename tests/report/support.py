"""Reports to render: a small one with everything in it, and one whose every text is hostile."""

from __future__ import annotations

from functools import cache

from tl2npu.report.build import build
from tl2npu.report.model import Report, Run
from tl2npu.results import (
    Change,
    Diagnostic,
    Disposition,
    FileResult,
    KernelResult,
    SelfCheck,
    Severity,
    Skipped,
    Verified,
)

RUN = Run("1.2.3", "migrate", False, 1, {"device": "A2", "select": []})

OLD = "import tilelang\n\n\ndef f():\n\twith T.Scope('C'):\n\t\tT.copy(a, b)\n    x = 'ü'\n"
NEW = "import tilelang\n\n\ndef f():\n\tT.copy(a, b)\n    x = 'ü'\n"

KERNEL = KernelResult(
    *("f.main", 4, "expert", "developer", "migrated", "because", ("TL201", "TL210"), Verified("sim", 2, 0.5)),
    pipes=(("vector", 30.5),),
    checked=SelfCheck(True, "", "M=64"),
)
REFUSED = KernelResult("f.other", 7, "gpu", "none", "refused", "no way", ("TL184",))
FINDINGS = (
    Diagnostic("TL801", "memory-capacity", "warning", 5, "too `much` of it", "take less", 2, 6, "f.main"),
    Diagnostic("TL184", "thread-level-code", "error", 7, "threads", "use tiles", 5, None, "f.other"),
    Diagnostic("TL904", "unused-suppression", "info", 1, "not needed"),
)
FILES = (
    FileResult(
        "a/b.py",
        OLD,
        NEW,
        None,
        (KERNEL, REFUSED),
        FINDINGS,
        (Change("TL201", 5, "the scope goes", "f.main"), Change("TL210", 6, "indented", "f.main", "unsafe")),
    ),
    FileResult("c.py", error="no such file"),
)

HOSTILE = (
    "</script><script>alert(1)</script>'\"&<img src=x onerror=alert(2)>`|\n::error::x\r%0A\x1b[31m\u202e@team #1 ]]>"
)


def report(run: Run = RUN) -> Report:
    """Two kernels, three findings, two changes, a file that failed and one that was skipped."""
    return build(run, FILES, [Skipped("g.py", "@generated")])


def kernel(name: str, line: int, disposition: Disposition = "migrated", reason: str = "why") -> KernelResult:
    return KernelResult(name, line, "vid", "developer", disposition, reason)


def finding(line: int, name: str | None, severity: Severity = "error", help: str = "") -> Diagnostic:
    return Diagnostic("TL801", "memory-capacity", severity, line, f"at {line}", help, 3, kernel=name)


def hostile() -> Report:
    """Every text that comes from outside tries to break out of its place."""
    text = f"# {HOSTILE}\nold\n"
    files = (
        FileResult(
            HOSTILE,
            text,
            text.replace("old", f"new {HOSTILE}"),
            None,
            (KernelResult(HOSTILE, 1, HOSTILE, HOSTILE, "migrated", HOSTILE, (HOSTILE,), Verified(HOSTILE, 1, 0.0)),),
            (Diagnostic("TL801", HOSTILE, "error", 1, HOSTILE, HOSTILE, 3, 1, HOSTILE),),
            (Change("TL201", 1, HOSTILE, HOSTILE),),
        ),
        FileResult(HOSTILE + "2", error=HOSTILE),
    )
    return build(RUN, files, [Skipped(HOSTILE + "3", HOSTILE)])


@cache
def many(count: int) -> Report:
    """One kernel and one finding in each of ``count`` files."""
    dispositions: tuple[Disposition, ...] = ("migrated", "refused", "partial", "unchanged")
    return build(RUN, [_numbered(number, dispositions[number % 4]) for number in range(count)])


def _numbered(number: int, disposition: Disposition) -> FileResult:
    item = Diagnostic("TL184", "thread-level-code", "error", 7, f"threads {number}", "use tiles", kernel="f.main")
    target = "developer" if disposition in ("migrated", "partial") else "none"
    found = KernelResult("f.main", 4, "gpu", target, disposition, "so", ("TL184",))
    new = NEW if target == "developer" else OLD
    return FileResult(f"dir/{number:04}.py", OLD, new, None, (found,), (item,), (Change("TL201", 5, "gone", "f.main"),))
