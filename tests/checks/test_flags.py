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


LOOP = """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def scaled(rows):
    @T.prim_func
    def main(X: T.Tensor((rows * 64, 128), "float32"), Y: T.Tensor((rows * 64, 128), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((32, 128), "float32")
            with T.Scope("V"):
                T.set_flag("mte3", "mte2", 0)  # primes
                for i in T.serial(rows):
                    T.wait_flag("mte3", "mte2", 0)  # free
                    T.copy(X[i * 64 + vid * 32, 0], x)
                    T.set_flag("mte2", "v", 0)
                    T.wait_flag("mte2", "v", 0)
                    T.tile.add(x, x, x)
                    T.set_flag("v", "mte3", 0)
                    T.wait_flag("v", "mte3", 0)  # computed
                    T.copy(x, Y[i * 64 + vid * 32, 0])
                    T.set_flag("mte3", "mte2", 0)
                T.wait_flag("mte3", "mte2", 0)  # drains

    return main
"""
PRIMES = '                T.set_flag("mte3", "mte2", 0)  # primes\n'
DRAINS = '                T.wait_flag("mte3", "mte2", 0)  # drains\n'


def circles(text: str) -> list[tuple[int, str, str]]:
    found = check_text(text, "kernel.py", Options()).diagnostics
    return [(d.line, d.code, d.severity) for d in found if d.code in ("TL330", "TL333")]


def test_a_wait_whose_set_comes_behind_it() -> None:
    """Without the set of the prologue and the wait of the epilogue the counts agree, and MTE2 waits for MTE3, MTE3 for
    V, and V for MTE2."""
    assert circles(LOOP) == []
    text = LOOP.replace(PRIMES, "").replace(DRAINS, "")
    (found,) = [d for d in check_text(text, "kernel.py", Options()).diagnostics if d.code == "TL333"]
    assert (found.line, found.severity) == (line_of(text, "# free"), "error")
    last, computed = line_of(text, 'T.set_flag("mte3", "mte2"'), line_of(text, "# computed")
    assert f"pipe MTE2 waits for line {last} to set `mte3` -> `mte2` 0; before that, pipe MTE3" in found.message
    assert f"waits on line {computed}" in found.message
    assert f"before the loop on line {line_of(text, 'for i')}" in found.help
    assert circles(text + "\n\nkernel = scaled(8)\n") == [(found.line, "TL333", "error")]
    assert [(d.line, d.severity) for d in migrated(text).diagnostics if d.code == "TL333"] == [(found.line, "warning")]


def test_a_set_that_is_missing_is_missed_by_the_first_wait() -> None:
    """Not by the one at the end, which has the flag of the last turn as soon as the first one has its own."""
    text = LOOP.replace(PRIMES, "")
    (found,) = [d for d in check_text(text, "kernel.py", Options()).diagnostics if d.code in ("TL330", "TL333")]
    assert (found.code, found.line, found.severity) == ("TL330", line_of(text, "# free"), "error")
    assert f"before the loop on line {line_of(text, 'for i')}" in found.help


def test_a_barrier_holds_up_what_sets_the_flag() -> None:
    """A wait of V in front of its set is nothing to worry about, but for a barrier of all pipes between the two."""
    wait = '                    T.wait_flag("mte2", "v", 0)\n'
    early = LOOP.replace(wait, "").replace("                    T.copy(X", f"{wait}                    T.copy(X")
    assert circles(early) == []
    barrier = "                    T.barrier_all()\n"
    text = early.replace("                    T.copy(X", f"{barrier}                    T.copy(X")
    assert circles(text) == [(line_of(text, 'T.wait_flag("mte2", "v", 0)'), "TL333", "error")]


def test_a_circle_of_a_later_turn() -> None:
    """Two events in turn, of which the prologue sets one: the second turn waits, if there is one."""
    text = (
        LOOP.replace('"mte2", 0)  # free', '"mte2", i % 2)  # free')
        .replace(DRAINS, "")
        .replace('T.set_flag("mte3", "mte2", 0)\n', 'T.set_flag("mte3", "mte2", 1 - i % 2)\n')
    )
    assert circles(text) == [(line_of(text, "# primes"), "TL330", "warning")]  # in order, but for what is left
    text = text.replace("1 - i % 2", "i % 2")
    assert (line_of(text, "# free"), "TL333", "warning") in circles(text)
    assert (line_of(text, "# free"), "TL333", "error") in circles(text + "\n\nkernel = scaled(8)\n")


def test_what_depends_on_data_is_not_followed() -> None:
    text = LOOP.replace(PRIMES, "").replace(DRAINS, "")
    wait = '                    T.wait_flag("mte3", "mte2", 0)  # free'
    text = text.replace(wait, f"                    if X[i, 0] > 0.0:\n    {wait}")
    assert [code for _, code, _ in circles(text)] == []
