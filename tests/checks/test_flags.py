"""TL330 as ``migrate`` says it: beside a refusal, beside a migration, and for the sizes of a call."""

from __future__ import annotations

from tl2npu.migration import check_text, migrate_text
from tl2npu.options import Options
from tl2npu.results import FileResult

VECTOR = """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def scaled(rows, slots):
    @T.prim_func
    def main(X: T.Tensor((rows * 64, 128), "float32"), Y: T.Tensor((rows * 64, 128), "float32")):
        with T.Kernel(rows, is_npu=True) as (cid, vid):
            x = T.alloc_ub((32, 128), "float32")
            with T.Scope("V"):
                T.copy(X[cid * 64 + vid * 32, 0], x)
                T.set_flag("mte2", "v", 0)
                T.wait_flag("mte2", "v", 0)
                T.tile.add(x, x, x)
                T.set_flag("v", "mte3", 0)
                T.wait_flag("v", "mte3", 0)
                T.copy(x, Y[cid * 64 + vid * 32, 0])

    return main
"""


def migrated(text: str) -> FileResult:
    return migrate_text(text, "kernel.py", Options())


def said(result: FileResult) -> list[tuple[int, str]]:
    return [(d.line, d.severity) for d in result.diagnostics if d.code == "TL330"]


def line_of(text: str, part: str) -> int:
    (line,) = [n for n, row in enumerate(text.split("\n"), 1) if part in row]
    return line


def test_flags_that_pair() -> None:
    assert said(migrated(VECTOR)) == []


def test_a_kernel_that_is_migrated() -> None:
    """The flags go all the same, and the author hears of it."""
    text = VECTOR.replace('                T.wait_flag("v", "mte3", 0)\n', "")
    result = migrated(text)
    assert [kernel.disposition for kernel in result.kernels] == ["migrated"]
    assert "TL330" in result.kernels[0].codes
    assert said(result) == [(line_of(text, 'T.set_flag("v", "mte3", 0)'), "warning")]
    assert "_flag" not in (result.new_text or "")


def test_a_kernel_that_is_refused() -> None:
    text = VECTOR.replace('T.wait_flag("v", "mte3", 0)', "T.shmem_get_nbi(x, Y, 32, 1)")
    result = migrated(text)
    assert [kernel.disposition for kernel in result.kernels] == ["refused"]
    assert said(result) == [(line_of(text, 'T.set_flag("v", "mte3", 0)'), "warning")]


def test_a_comment_switches_it_off() -> None:
    text = VECTOR.replace('                T.wait_flag("v", "mte3", 0)\n', "").replace(
        'T.set_flag("v", "mte3", 0)', 'T.set_flag("v", "mte3", 0)  # tl2npu: ignore[TL330]'
    )
    result = migrated(text)
    assert said(result) == []
    assert "TL904" not in {d.code for d in result.diagnostics}


def test_the_sizes_of_a_call() -> None:
    """As many waits as slots, three sets."""
    waits = "                for s in T.serial(slots):\n                    T.wait_flag('v', 'mte2', s)\n"
    sets = "".join(f"                T.set_flag('v', 'mte2', {n})\n" for n in range(3))
    text = VECTOR.replace("                T.copy(X", sets + "                T.copy(X").replace(
        "    return main", waits + "\n    return main"
    )
    assert said(migrated(text + "\n\nkernel = scaled(4, 3)\n")) == []
    text += "\n\nkernel = scaled(4, 2)\n"
    other = "\n\n" + VECTOR[VECTOR.index("@tilelang.jit") :].replace("scaled", "another")
    text = text.replace("\n\n\n@tilelang.jit", other + "\n\n\n@tilelang.jit", 1)  # the line is that of the whole file
    found = migrated(text)
    assert said(found) == [(line_of(text, "T.set_flag('v', 'mte2', 2)"), "warning")]
    (message,) = [d.message for d in found.diagnostics if d.code == "TL330"]
    assert message.endswith(f"for the sizes of line {line_of(text, 'kernel = scaled')}")


WAIT = '                T.wait_flag("v", "mte3", 0)\n'


def test_a_wait_that_nothing_ends_is_an_error_of_a_kernel_that_stays() -> None:
    for one, found in (
        (VECTOR.replace('                T.set_flag("v", "mte3", 0)\n', ""), ["error"]),
        (VECTOR.replace(WAIT, WAIT + WAIT.replace("0", "1")), ["error"]),
        (VECTOR.replace(WAIT, ""), ["warning"]),  # the core goes on
        (VECTOR.replace(WAIT, f"{WAIT}                if cid > rows:\n    {WAIT}"), ["warning"]),  # where it runs
    ):
        assert [d.severity for d in check_text(one, "kernel.py", Options()).diagnostics if d.code == "TL330"] == found


def test_the_help_names_the_call_that_is_missing() -> None:
    for left_out, call in (("set_flag", 'T.set_flag("v", "mte3", 0)'), ("wait_flag", 'T.wait_flag("v", "mte3", 0)')):
        text = VECTOR.replace(f'                T.{left_out}("v", "mte3", 0)\n', "")
        (found,) = [d for d in check_text(text, "kernel.py", Options()).diagnostics if d.code == "TL330"]
        assert found.help.startswith(f"a `{call}` is missing")
