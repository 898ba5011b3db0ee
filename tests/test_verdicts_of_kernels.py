"""Which errors belong to which kernel: by name, the closest above where names repeat; those of the file to all."""

from __future__ import annotations

from dataclasses import replace

from tl2npu.results import VERDICTS, Diagnostic, FileResult, KernelResult, judged
from tl2npu.sinks import exit_code


def kernel(name: str, line: int, disposition: str = "migrated", cell: int | None = None) -> KernelResult:
    target = "developer" if disposition in ("migrated", "partial") else "none"
    return KernelResult(name, line, "gpu", target, disposition, "", cell=cell)  # type: ignore[arg-type]


def found(code: str, line: int, name: str | None, severity: str = "error", cell: int | None = None) -> Diagnostic:
    return Diagnostic(code, "", severity, line, "", kernel=name, cell=cell)  # type: ignore[arg-type]


def errors(kernels: list[KernelResult], *items: Diagnostic) -> list[tuple[str, ...]]:
    result = judged(FileResult("k.py", "a", "b", kernels=tuple(kernels), diagnostics=items))
    assert {one.verdict for one in result.kernels} <= set(VERDICTS)
    assert exit_code(result, "migrate", False) == int(any(one.errors or one.unfinished for one in result.kernels))
    return [one.errors for one in result.kernels]


def test_errors_have_owners() -> None:
    two = [kernel("f.main", 5), kernel("g.main", 20)]
    assert errors(two) == [(), ()]
    assert errors(two, found("TL801", 40, "g.main"), found("TL801", 41, "g.main")) == [(), ("TL801",)]
    assert errors(two, found("TL801", 40, "g.main", "warning")) == [(), ()]
    assert errors(two, found("TL734", 1, None), found("TL735", 5, "f.main")) == [("TL734", "TL735"), ("TL734",)]
    same = [kernel("main", 5), kernel("main", 20)]
    assert errors(same, found("TL801", 21, "main")) == [(), ("TL801",)]
    assert errors(same, found("TL801", 19, "main")) == [("TL801",), ()]
    assert errors(same, found("TL801", 1, "main")) == [("TL801",), ()]
    cells = [kernel("main", 5, cell=1), kernel("main", 5, cell=3)]
    assert errors(cells, found("TL801", 9, "main", cell=2)) == [("TL801",), ()]
    assert errors(cells, found("TL801", 9, "main", cell=3)) == [(), ("TL801",)]


def test_only_what_was_written_has_errors() -> None:
    kinds = ["migrated", "partial", "refused", "unchanged"]
    four = [kernel(name, 5, name) for name in kinds]
    told = [found("TL801", 6, name) for name in kinds]
    assert errors(four, *told, found("TL734", 1, None)) == [("TL734", "TL801"), ("TL734", "TL801"), (), ()]
    marked = replace(kernel("f", 5, "partial"), target="none")
    assert errors([marked], found("TL184", 6, "f")) == [()]
    assert exit_code(FileResult("k.py", kernels=(marked,)), "migrate", False) == 1
