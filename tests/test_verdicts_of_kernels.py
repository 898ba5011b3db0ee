"""Which errors belong to which kernel: by name, the closest above where names repeat; those of the file to all."""

from __future__ import annotations

from dataclasses import replace

from tl2npu import migrate
from tl2npu.results import NOT_SELECTED, VERDICTS, Diagnostic, FileResult, KernelResult, judged
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
    refused = kernel("f", 5, "refused")
    assert errors([refused], found("TL184", 6, "f")) == [()]
    assert exit_code(FileResult("k.py", kernels=(refused,)), "migrate", False) == 1


def test_a_kernel_in_developer_mode_has_errors_too() -> None:
    stays = replace(kernel("f", 5, "unchanged"), source="developer")
    told = [found("TL801", 6, "f"), found("TL734", 1, None)]
    assert errors([stays], *told) == [("TL734", "TL801")]
    assert errors([replace(stays, reason=NOT_SELECTED)], *told) == [()]


OLD = """import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def f(M=64, N=32):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(M // 32, is_npu=True) as (cid, vid):
            x = T.alloc_ub((16, N), "float32")
            with T.Scope("V"):
                T.copy(X[cid * 32 + vid * 16, 0], x)
                T.barrier_all()
                for i, j in T.Parallel(16, N):
                    x[i, j] = T.max(x[i, j], 3.0)
                T.barrier_all()
                T.copy(x, Y[cid * 32 + vid * 16, 0])

    return main
"""


def test_the_next_run_says_what_the_first_one_said() -> None:
    first = migrate(OLD, filename="k.py")
    assert [k.verdict for k in first.kernels] == ["migrated with errors"]
    text = first.new_text or ""
    again = migrate(text, filename="k.py")
    assert again.new_text == text
    assert [(k.verdict, k.errors) for k in again.kernels] == [("unchanged with errors", first.kernels[0].errors)]
    assert [d.code for d in again.diagnostics if d.severity == "error"] == ["TL896"]
    wrong = next(line for line in text.splitlines() if "T.max" in line)
    silenced = migrate(text.replace(wrong, wrong + "  # tl2npu: ignore[TL896]"), filename="k.py")
    assert [k.verdict for k in silenced.kernels] == ["unchanged"]


def test_a_file_that_cannot_be_imported_stays_one() -> None:
    mended = OLD.replace("T.max(x[i, j], 3.0)", "x[i, j] * 3.0")
    first = migrate(mended + "\n\nDTYPE = T.bfloat16\n", filename="k.py")
    assert [k.errors for k in first.kernels] == [("TL734",)]
    again = migrate(first.new_text or "", filename="k.py")
    assert [(k.verdict, k.errors) for k in again.kernels] == [("unchanged with errors", ("TL734",))]
