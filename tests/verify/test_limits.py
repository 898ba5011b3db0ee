"""Errors of ``tl2npu check`` in the new kernel fail it, whatever it computes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.verify.support import HEAD, SCALE, SCRIPT, by_calls, by_script, codes
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.verify.settings import Call

MIGRATED = migrate_text(SCRIPT, "kernel.py", Options()).new_text or ""

LEFT_OUT = {
    "is_npu": (", is_npu=True", "", "TL815"),
    "automatic sync": ("TL_ASCEND_AUTO_SYNC: True", "TL_ASCEND_AUTO_SYNC: False", "TL816"),
    "a second name": ("as (cid)", "as (cid, vid)", "TL815"),
    "a barrier": ("            T.tile.mul", "            T.barrier_all()\n            T.tile.mul", "TL814"),
}


@pytest.mark.parametrize(("text", "by", "code"), LEFT_OUT.values(), ids=LEFT_OUT)
@pytest.mark.parametrize("run", [by_calls, by_script])
def test_what_check_finds_fails_the_kernel(run: object, text: str, by: str, code: str) -> None:
    new = MIGRATED.replace(text, by)
    assert new != MIGRATED
    result = run(SCRIPT, new)  # type: ignore[operator]
    assert not result.ok
    assert [(k.name, k.status) for k in result.kernels] == [("scale.main", "failed")]
    found = next(d for d in result.diagnostics if d.code == code)
    assert (found.severity, found.kernel, found.line) == ("error", "scale.main", result.kernels[0].line)
    if code == "TL814":
        wrong = next(n for n, line in enumerate(new.split("\n"), 1) if "T.barrier_all()" in line)
        assert found.message.startswith(f"new.py line {wrong}: ")


def test_the_check_can_be_left_out() -> None:
    new = MIGRATED.replace(", is_npu=True", "")
    assert "TL815" not in codes(by_calls(SCRIPT, new, check=None))


def test_what_is_silenced_is_said() -> None:
    wrong = MIGRATED.replace("TL_ASCEND_AUTO_SYNC: True", "TL_ASCEND_AUTO_SYNC: False")
    head = "@tilelang.jit(out_idx=[1], pass_configs=pass_configs)"
    assert "TL816" in codes(by_calls(SCRIPT, wrong))
    silenced = by_calls(SCRIPT, wrong.replace(head, f"{head}  # tl2npu: ignore[TL816]"))
    assert "TL816" not in codes(silenced)
    assert [n for n in silenced.notes if n.startswith("scale.main: TL816 is silenced: new.py line ")]


GPU = """

@tilelang.jit(out_idx=[1])
def double(n):
    @T.prim_func
    def main(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")):
        with T.Kernel(n // 128, threads=128) as bx:
            x = T.alloc_fragment((128,), "float32")
            T.copy(X[bx * 128 : (bx + 1) * 128], x)
            for i in T.Parallel(128):
                x[i] = x[i] * 2.0
            T.copy(x, Y[bx * 128 : (bx + 1) * 128])

    return main
"""
OF_GPU = Call("double", {"n": 256})


def test_a_gpu_kernel_is_no_migration_of_a_gpu_kernel() -> None:
    other = HEAD + GPU.replace("x[i] * 2.0", "x[i] + x[i]")
    assert codes(by_calls(HEAD + GPU, other, OF_GPU)) == ["TL815"]
    assert by_calls(HEAD + GPU, other, OF_GPU, check=None).ok


def test_a_text_that_stays_is_not_held_against_it() -> None:
    """As where one kernel of a file was migrated and the other one refused."""
    result = by_calls(HEAD + GPU, HEAD + GPU, OF_GPU)
    assert result.ok
    assert [note for note in result.notes if "unchanged from the old kernel" in note]
    both = by_calls(SCRIPT + GPU, MIGRATED + GPU)
    assert (both.ok, codes(both)) == (True, [])


EXPERT = """

@tilelang.jit(out_idx=[1])
def twice(n):
    @T.prim_func
    def main(X: T.Tensor((n, 64), "float32"), Y: T.Tensor((n, 64), "float32")):
        with T.Kernel(n // 32, is_npu=True) as (cid, vid):
            x = T.alloc_ub((16, 64), "float32")
            with T.Scope("V"):
                T.copy(X[cid * 32 + vid * 16, 0], x)
                T.barrier_all()
                T.tile.mul(x, x, 2.0)
                T.barrier_all()
                T.copy(x, Y[cid * 32 + vid * 16, 0])

    return main
"""
OF_EXPERT = Call("twice", {"n": 64})


def test_expert_mode_may_be_compared_with_expert_mode() -> None:
    other = EXPERT.replace("T.tile.mul(x, x, 2.0)", "T.tile.add(x, x, x)")
    result = by_calls(HEAD + EXPERT, HEAD + other, OF_EXPERT)
    assert (result.ok, codes(result)) == (True, [])
    assert not by_calls(HEAD + EXPERT, HEAD + EXPERT.replace("2.0", "3.0"), OF_EXPERT).ok


def test_a_flag_that_is_left_in_a_migrated_kernel_is_a_failure() -> None:
    migrated = migrate_text(HEAD + EXPERT, "kernel.py", Options()).new_text or ""
    assert by_calls(HEAD + EXPERT, migrated, OF_EXPERT).ok
    left = migrated.replace("            T.tile.mul", "            T.barrier_all()\n            T.tile.mul")
    assert codes(by_calls(HEAD + EXPERT, left, OF_EXPERT)) == ["TL814"]


def test_a_finding_in_a_kernel_of_another_name() -> None:
    """It belongs to no old kernel, and there is no proof beside it."""
    other = SCALE.replace("def scale(", "def other(").replace(") as (cid, vid)", ", threads=2) as (cid, vid)")
    result = by_calls(SCRIPT, MIGRATED + other)
    assert not result.ok
    assert {(d.code, d.kernel) for d in result.diagnostics if d.severity == "error"} >= {("TL815", None)}


EAGER = """

@tilelang.jit
def plus(x, block: int = 128):
    n = T.const("n")
    x: T.Tensor((n,), "float32")
    y = T.empty((n,), "float32")
    with T.Kernel(n // block, threads=128) as b:
        t = T.alloc_fragment((block,), "float32")
        T.copy(x[b * block], t)
        for i in T.Parallel(block):
            t[i] = t[i] + 1.0
        T.copy(t, y[b * block])
    return y
"""


def test_the_factory_of_an_eager_kernel_is_its_kernel() -> None:
    migrated = migrate_text(HEAD + EAGER, "kernel.py", Options()).new_text or ""
    call = Call("plus", {"n": 256})
    assert by_calls(HEAD + EAGER, migrated, call).ok
    result = by_calls(HEAD + EAGER, migrated.replace(", is_npu=True", ""), call)
    assert [(k.name, k.status) for k in result.kernels] == [("plus", "failed")]
    assert "TL815" in codes(result)


LOST = HEAD + """

@tilelang.jit(out_idx=[1], pass_configs=pass_configs)
def double(rows, S, dtype="float32"):
    @T.prim_func
    def main(x: T.Tensor((rows, 64), dtype), y: T.Tensor((rows, 64), dtype)):
        with T.Kernel(rows // 32, threads=2, is_npu=True) as (cid):
            t = T.alloc_shared((32, 64), dtype)
            T.copy(x[cid * 32, 0], t)
            T.tile.add(t, t, t)
            T.copy(t, y[cid * 32, 0])

    return main
"""


def test_a_call_by_position_of_a_factory_that_lost_a_parameter() -> None:
    """The check of the new text takes the values by the names that they had in the old one."""
    new = LOST.replace("rows, S, dtype", "rows, dtype").replace("T.tile.add(t, t, t)", "T.tile.mul(t, t, 2.0)")
    result = by_calls(LOST, new, Call("double", {"0": 64, "1": 2, "2": "float32"}))
    assert result.ok, [(d.code, d.message) for d in result.diagnostics]
    wide = by_calls(LOST, new, Call("double", {"0": 64, "1": 2, "2": "float64"}))
    assert not wide.ok


SYMBOLIC = """
pass_configs[tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC] = True


@tilelang.jit(out_idx=[2], pass_configs=pass_configs)
def scores(d=64):
    M = T.symbolic("M")

    @T.prim_func
    def main(
        Q: T.Tensor((M, d), "float16"),
        K: T.Tensor((d, 64), "float16"),
        S: T.Tensor((M, 64), "float32"),
    ):
        with T.Kernel(M // 64, threads=2, is_npu=True) as (cid):
            q = T.alloc_shared((64, d), "float16")
            k = T.alloc_shared((d, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            s = T.alloc_shared((64, 64), "float32")
            T.copy(Q[cid * 64, 0], q)
            T.copy(K, k)
            T.gemm_v0(q, k, acc, init=True)
            T.copy(acc, s)
            T.tile.exp(s, s)
            T.copy(s, S[cid * 64, 0])

    return main
"""


def test_a_kernel_that_the_compiler_cannot_call() -> None:
    """Hand-overs on chip get workspaces of one slot for each block: nobody can allocate them for a symbolic grid."""
    old = HEAD + SYMBOLIC.replace("T.tile.exp(s, s)", "T.tile.mul(s, s, 1.0)\n            T.tile.exp(s, s)")
    result = by_calls(old, HEAD + SYMBOLIC, Call("scores", {"d": 64}))
    assert not result.ok
    assert "TL881" in codes(result)


BOUND_AGAIN = """            step = factor
            if rows > 32:
                step = factor * 1.0
            T.tile.mul(x, x, step)"""


def test_a_name_that_keeps_its_old_value_in_both_is_told() -> None:
    """The compiler reads both texts alike; the same in the new kernel alone fails it."""
    line = "            T.tile.mul(x, x, factor)"
    old, new = SCRIPT.replace(line, BOUND_AGAIN), MIGRATED.replace(line, BOUND_AGAIN)
    assert MIGRATED not in (new, SCRIPT)
    result = by_calls(old, new)
    assert (result.ok, codes(result)) == (True, [])
    assert [note for note in result.notes if "TL739" in note or note.endswith("(as in the old kernel)")]
    assert codes(by_calls(SCRIPT, new)) == ["TL739"]


LARGE = """

@tilelang.jit(out_idx=[1], pass_configs=pass_configs)
def f(M, N, BM, BN=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(M // BM, threads=1, is_npu=True) as (cid):
            x = T.alloc_shared((BM, BN), "float32")
            T.copy(X[cid * BM, 0], x)
            T.tile.add(x, x, 1.0)
            T.copy(x, Y[cid * BM, 0])

    return main


def large():
    return f(4096, 64, 1024)


if __name__ == "__main__":
    f(64, 64, 32)(np.zeros((64, 64), np.float32))
"""


@pytest.mark.parametrize("arguments", [{"M": 64, "N": 64, "BM": 32}, {"0": 64, "1": 64, "BM": 16}])
def test_the_call_that_is_given_is_judged(arguments: dict[str, Any]) -> None:
    """Another call of the file does not fit."""
    old = HEAD + LARGE
    new = old.replace("add(x, x, 1.0)", "add(x, x, 2.0 - 1.0)")
    assert by_calls(old, new, Call("f", arguments)).ok
    assert codes(by_script(old, new)) == ["TL801"]
    result = by_calls(old, new, Call("f", {"M": 4096, "N": 64, "BM": 1024}))
    (found,) = [d for d in result.diagnostics if d.severity == "error"]
    assert (found.code, "BM=1024" in found.message) == ("TL801", True)


def test_one_need_of_memory_one_number() -> None:
    """The simulator counts the kernel's own buffers, ``check`` what the compiler adds as well: one of them is told."""
    old = HEAD + LARGE
    call = Call("f", {"M": 4096, "N": 64, "BM": 1024})
    result = by_calls(old, old.replace("1.0)", "2.0 - 1.0)"), call, check=None)
    (found,) = [d for d in result.diagnostics if d.severity == "error"]
    assert found.code == "TL801"
    assert "for its own buffers" in found.message
