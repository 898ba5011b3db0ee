"""Files of several kernels: each gets its verdict, whatever the work on another does to the text around it."""

from __future__ import annotations

import pytest

from tl2npu.migration import migrate_text
from tl2npu.options import Options

HEAD = "import tilelang\nimport tilelang.language as T\n\n"
MACRO = """
# TODO: doubles a tile
@T.macro
def twice(a):
    for i, j in T.Parallel(64, 64):
        a[i, j] = a[i, j] * 2.0

"""
FACTORY = """
@tilelang.jit(out_idx=[1])
def {name}():
    @T.prim_func
    def main(A: T.Tensor((128, 64), "float32"), B: T.Tensor((128, 64), "float32")):
        with T.Kernel(2, threads=128) as bx:
            a = T.alloc_shared((64, 64), "float32")
            T.copy(A[bx * 64, 0], a)
            {work}
            T.copy(a, B[bx * 64, 0])

    return main

"""


def factory(name: str, work: str = "T.clear(a)") -> str:
    return FACTORY.format(name=name, work=work)


@pytest.mark.parametrize("macro_at", range(4))
@pytest.mark.parametrize("user", range(3))
def test_a_comment_that_comes_to_the_next_kernel(macro_at: int, user: int) -> None:
    """The macro goes with its last use, and the note above it stays: above what follows, maybe another kernel."""
    parts = [factory(f"f{number}", "twice(a)" if number == user else "T.clear(a)") for number in range(3)]
    parts.insert(macro_at, MACRO)
    result = migrate_text(HEAD + "".join(parts), "k.py", Options())
    assert [(kernel.name, kernel.disposition) for kernel in result.kernels] == [
        ("f0.main", "migrated"),
        ("f1.main", "migrated"),
        ("f2.main", "migrated"),
    ]
    assert "# TODO: doubles a tile" in (result.new_text or "")


def test_another_kernel_changes_with_this_one() -> None:
    """``dtype`` is bound once, in a function that both kernels are in; the second is refused."""
    inner = factory("good") + factory("bad", "tx = T.get_warp_idx()")
    inner = "    dtype = T.float32\n" + "".join(f"    {line}\n" if line else "\n" for line in inner.splitlines())
    text = HEAD + "def both():\n" + inner.replace('"float32"', "dtype") + "    return good(), bad()\n"
    result = migrate_text(text, "k.py", Options())
    assert [kernel.name for kernel in result.kernels] == ["good.main", "bad.main"]


def test_a_factory_that_calls_another() -> None:
    """What the other one makes is refused, and its text stays as it is, types included."""
    good = factory("good").replace("():\n", "(other):\n    if other:\n        return bad()\n\n")
    bad = factory("bad", "tx = T.get_warp_idx()").replace('"float32"', "T.float32")
    result = migrate_text(HEAD + good + bad, "k.py", Options())
    assert [kernel.disposition for kernel in result.kernels] == ["migrated", "refused"]
    assert bad.strip() in (result.new_text or "")


@pytest.mark.parametrize(
    "around",
    ["match 1:\n    case 1:\n        ", "for _ in range(1):\n        ", "while True:\n        "]
    + [f"try:\n    pass\n{handler}:\n        " for handler in ("except ValueError", "else", "finally")],
)
def test_a_kernel_in_a_block_of_the_module(around: str) -> None:
    inner = factory("one").strip().replace("\n", "\n        ") + "\n"
    around = around.replace("else:", "except ValueError:\n    pass\nelse:")
    result = migrate_text(HEAD + around + inner, "k.py", Options())
    assert [(kernel.name, kernel.disposition) for kernel in result.kernels] == [("one.main", "migrated")]
