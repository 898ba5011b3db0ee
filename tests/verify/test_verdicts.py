"""What is proved, and what is not: small kernels by calls, in this process."""

from __future__ import annotations

import pytest

from tests.verify.support import CALL, HEAD, MAIN, SCALE, SCRIPT, by_calls, codes
from tl2npu.migration import migrate_text
from tl2npu.options import Backend, Options
from tl2npu.results import Verified
from tl2npu.verify.settings import Call, UsageError

MIGRATED = migrate_text(SCRIPT, "kernel.py", Options()).new_text or ""


def test_old_and_migrated_agree() -> None:
    assert "threads=2" in MIGRATED
    result = by_calls(SCRIPT, MIGRATED)
    assert result.ok
    assert result.diagnostics == ()
    assert [(k.name, k.status, k.verified) for k in result.kernels] == [
        ("scale.main", "verified", Verified("sim", 1, 0.0))
    ]
    assert result.comparisons[0].outputs == ("Y",)
    assert result.comparisons[0].call == "scale(rows=64, factor=0.5)"
    assert result.notes == (
        "inputs of scale.main (seed 0): X standard normal",
        "scale.main: also on wide values, small whole numbers, the whole range, infinities, NaN, "
        "values far from 0, values far below 0",
    )


MUTATIONS = {
    "the factor": ("T.tile.mul(x, x, factor)", "T.tile.mul(x, x, factor + 0.01)"),
    "the operator": ("T.tile.mul(x, x, factor)", "T.tile.add(x, x, factor)"),
    "rows read": ("T.copy(X[cid * 32, 0], x)", "T.copy(X[0, 0], x)"),
    "rows written": ("T.copy(x, Y[cid * 32, 0])", "T.copy(x, Y[(1 - cid) * 32, 0])"),
    "a lost block": ("T.Kernel(rows // 32,", "T.Kernel(rows // 32 - 1,"),
}


@pytest.mark.parametrize("change", MUTATIONS.values(), ids=MUTATIONS)
def test_every_mutation_is_found(change: tuple[str, str]) -> None:
    assert MIGRATED.count(change[0]) == 1
    result = by_calls(SCRIPT, MIGRATED.replace(*change))
    assert not result.ok
    assert "TL907" in codes(result)
    assert [k.status for k in result.kernels] == ["failed"]
    assert result.kernels[0].verified is None


def test_the_first_difference_is_named_with_its_statements() -> None:
    line = SCRIPT.split("\n").index("            T.copy(x, Y[cid * 32 + vid * 16, 0])") + 1
    wrong = MIGRATED.replace("T.tile.mul(x, x, factor)", "T.tile.fill(x, 7.0)")
    new_line = wrong.split("\n").index("            T.copy(x, Y[cid * 32, 0])") + 1
    found = by_calls(SCRIPT, wrong).diagnostics[0]
    assert (found.code, found.severity, found.kernel) == ("TL907", "error", "scale.main")
    assert found.message.startswith("Y[0, 0] is ")
    assert (
        f"(old, by copy at old.py:{line} in block 0 (aiv0)) and 7.0 (new, by copy at new.py:{new_line} "
        in found.message
    )
    assert "4096 of 4096 elements differ" in found.message


def test_a_tolerance_of_ones_own() -> None:
    wrong = MIGRATED.replace("T.tile.mul(x, x, factor)", "T.tile.mul(x, x, factor + 0.01)")
    assert not by_calls(SCRIPT, wrong, rtol=1e-2, atol=0.0).ok
    assert by_calls(SCRIPT, wrong, rtol=3e-2, atol=0.0).ok


def test_an_output_of_another_shape() -> None:
    wrong = MIGRATED.replace('Y: T.Tensor((rows, 64), "float32")', 'Y: T.Tensor((rows, 1, 64), "float32")')
    result = by_calls(SCRIPT, wrong)
    assert not result.ok
    assert result.kernels[0].status in ("failed", "not verified")


def test_a_lost_output() -> None:
    two = SCALE.replace("out_idx=[1]", "out_idx=[1, 2]").replace(
        "    ):\n", '        Z: T.Tensor((rows, 64), "float32"),\n    ):\n'
    )
    two = two.replace(
        "            T.copy(x, Y[", "            T.copy(x, Z[cid * 32 + vid * 16, 0])\n            T.copy(x, Y["
    )
    assert by_calls(HEAD + two, HEAD + two).ok
    result = by_calls(HEAD + two, HEAD + SCALE)
    assert not result.ok
    assert "the output Z of the old kernel is missing in the new one" in result.diagnostics[0].message


def test_a_kernel_without_a_call_is_not_verified() -> None:
    other = SCALE.replace("def scale(", "def other(")
    old, new = (
        HEAD + SCALE + other,
        HEAD + SCALE.replace("factor)", "factor * 1.0)", 1) + other.replace("is_npu=True", "is_npu=(True)"),
    )
    result = by_calls(old, new.replace("T.tile.mul(x, x, factor)", "T.tile.mul(x, x, factor + 0.0)"))
    assert [k.status for k in result.kernels] == ["verified", "not verified"]
    assert not result.ok
    assert codes(result) == ["TL906"]
    assert result.diagnostics[0].kernel == "other.main"


def test_a_kernel_that_is_the_same_need_not_be_called() -> None:
    other = SCALE.replace("def scale(", "def other(")
    result = by_calls(HEAD + SCALE + other, MIGRATED.replace(MAIN, "") + other)
    assert [k.status for k in result.kernels] == ["verified", "not verified"]
    assert result.ok


def test_an_operator_without_meaning_is_not_ok() -> None:
    wrong = SCRIPT.replace("T.tile.mul(x, x, factor)", "T.tma_load(x, x)")
    for old, new in ((wrong, MIGRATED), (SCRIPT, wrong)):
        result = by_calls(old, new)
        assert not result.ok
        assert [k.status for k in result.kernels] == ["not verified" if new is MIGRATED else "failed"]
        assert "TL906" in codes(result)
        assert {d.kernel for d in result.diagnostics} == {"scale.main"}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (Call("missing", {}), "no factory 'missing'"),
        (Call("scale", {}), r"does not take these arguments: .*'rows'; it takes \(rows, factor=0.5\)"),
        (Call("scale", {"rows": 64, "columns": 2}), "does not take these arguments: no parameter 'columns'"),
        (Call("pass_configs", {}), "no factory 'pass_configs'"),
    ],
)
def test_calls_that_give_no_kernel(call: Call, said: str) -> None:
    """Wrong usage, no verdict."""
    with pytest.raises(UsageError, match=said):
        by_calls(SCRIPT, MIGRATED, call)


def test_positional_arguments_of_a_call() -> None:
    assert by_calls(SCRIPT, MIGRATED, Call("scale", {"0": 32, "factor": 2.0})).ok


def test_several_calls_count() -> None:
    result = by_calls(SCRIPT, MIGRATED, CALL, Call("scale", {"rows": 96, "factor": 3.0}))
    assert result.kernels[0].verified == Verified("sim", 2, 0.0)


def test_a_new_file_without_the_factory() -> None:
    result = by_calls(SCRIPT, MIGRATED.replace("def scale(", "def scaled("))
    assert not result.ok
    assert "has no factory 'scale'" in result.diagnostics[0].message


@pytest.mark.parametrize("wrong", ["T.tile.mul(x, x, undefined)", "T.tile.mul(x, x, [0][factor > 0.0])"])
def test_a_new_kernel_that_is_no_kernel_fails(wrong: str) -> None:
    """The old one could be built with the same arguments, so this is not for want of a meaning."""
    result = by_calls(SCRIPT, MIGRATED.replace("T.tile.mul(x, x, factor)", wrong))
    assert [k.status for k in result.kernels] == ["failed"]
    assert codes(result)[-1] == "TL908"
    assert [k.status for k in by_calls(SCRIPT.replace("T.tile.mul(x, x, factor)", wrong), MIGRATED).kernels] == [
        "not verified"
    ]


def test_a_file_that_stops_before_its_factory() -> None:
    result = by_calls("raise OSError('no file')\n" + SCRIPT, MIGRATED)
    assert not result.ok
    assert "no file" in result.diagnostics[0].message


def test_a_file_that_stops_behind_its_factory_can_be_used() -> None:
    result = by_calls(SCRIPT + "\nraise SystemExit(3)\n", MIGRATED + "\n1 / 0\n")
    assert result.ok
    assert "the code of old.py outside its kernels failed: SystemExit: 3" in result.notes


def test_other_backends_are_refused_by_number() -> None:
    for backend in ("compile", "npu", "camodel"):
        result = by_calls(SCRIPT, MIGRATED, backend=Backend(backend))
        assert (result.ok, codes(result), result.backend) == (False, ["TL912"], backend)


def test_names_that_no_parameter_has() -> None:
    with pytest.raises(UsageError, match="no such parameter"):
        by_calls(SCRIPT, MIGRATED, Call("scale", {"rows": 64}, {"Z": "0"}))


def test_bit_for_bit_in_the_ring() -> None:
    """Halving twice is a quarter: equal in the ring, and a lost factor is not."""
    twice = MIGRATED.replace(
        "            T.tile.mul(x, x, factor)\n",
        "            T.tile.mul(x, x, factor * 2.0)\n            T.tile.mul(x, x, 0.5)\n",
    )
    result = by_calls(SCRIPT, twice, arithmetic="algebraic")
    assert result.ok
    assert result.arithmetic == "algebraic"
    wrong = MIGRATED.replace("T.tile.mul(x, x, factor)", "T.tile.mul(x, x, factor + 2.0 ** -20)")
    assert by_calls(SCRIPT, wrong, rtol=1e-3).ok
    assert not by_calls(SCRIPT, wrong, arithmetic="algebraic").ok


HALF = """

@tilelang.jit(out_idx=[1], pass_configs=pass_configs)
def scale(rows, factor=0.5):
    @T.prim_func
    def main(
        X: T.Tensor((rows, 64), "float32"),
        Y: T.Tensor((rows, 64), "float32"),
    ):
        with T.Kernel(rows // 32, threads=1, is_npu=True) as (cid):
            x = T.alloc_ub((32, 64), "float32")
            T.copy(X[cid * 32 : cid * 32 + 16, 0:64], x[0:16, :])
            T.tile.mul(x, x, factor)
            T.copy(x, Y[cid * 32, 0])

    return main
"""
"""Half of the rows of a tile are never loaded."""


def test_what_the_old_kernel_leaves_undefined_is_not_held_against_the_new_one() -> None:
    old = HEAD + HALF
    result = by_calls(old, old.replace("x, x, factor", "x, x, factor * 1.0"))
    assert [k.status for k in result.kernels] == ["verified"]
    assert [(d.code, d.severity) for d in result.diagnostics] == [("TL908", "warning")]
    assert "the old kernel: " in result.diagnostics[0].message


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("cid * 32 + 16, 0:64], x[0:16, :]", "cid * 32 + 8, 0:64], x[0:8, :]"), "TL908"),
        (("x, x, factor", "x, x, factor * 2.0"), "TL907"),
    ],
)
def test_what_it_does_define_is_compared(change: tuple[str, str], expected: str) -> None:
    old = HEAD + HALF
    result = by_calls(old, old.replace(*change))
    assert [k.status for k in result.kernels] == ["failed"]
    assert expected in codes(result)


def test_undefined_data_of_the_new_kernel_alone() -> None:
    old = HEAD + HALF.replace("cid * 32 + 16, 0:64], x[0:16, :]", "cid * 32 + 32, 0:64], x[0:32, :]")
    assert [k.status for k in by_calls(old, HEAD + HALF).kernels] == ["failed"]
    assert [k.status for k in by_calls(HEAD + HALF, old).kernels] == ["verified"]


TWINS = (
    HEAD
    + """

@tilelang.jit(out_idx=[1])
def f(M, twice=False):
    if twice:
        @T.prim_func
        def main(A: T.Tensor((M, 64), "float32"), B: T.Tensor((M, 64), "float32")):
            with T.Kernel(M // 16, threads=128) as bx:
                a = T.alloc_shared((16, 64), "float32")
                T.copy(A[bx * 16, 0], a)
                for i, j in T.Parallel(16, 64):
                    a[i, j] = a[i, j] * 2.0
                T.copy(a, B[bx * 16, 0])
    else:
        @T.prim_func
        def main(A: T.Tensor((M, 64), "float32"), B: T.Tensor((M, 64), "float32")):
            with T.Kernel(M // 16, threads=128) as bx:
                a = T.alloc_shared((16, 64), "float32")
                T.copy(A[bx * 16, 0], a)
                for i, j in T.Parallel(16, 64):
                    a[i, j] = a[i, j] * 3.0
                T.copy(a, B[bx * 16, 0])
    return main
"""
)


def test_a_kernel_proves_nothing_of_another_one_of_its_name() -> None:
    new = migrate_text(TWINS, "k.py", Options()).new_text
    assert new is not None
    wrong = new.replace("* 2.0", "* 2.5")
    calls = [Call("f", {"M": 64, "twice": twice}) for twice in (False, True)]
    one = by_calls(TWINS, wrong, calls[0])
    assert not one.ok
    assert sorted(k.status for k in one.kernels) == ["not verified", "verified"]
    both = by_calls(TWINS, new, *calls)
    assert both.ok
    assert [k.status for k in both.kernels] == ["verified", "verified"]
    assert len({k.line for k in both.kernels}) == 2
    assert not by_calls(TWINS, wrong, *calls).ok
    kept = new.replace("* 3.0", "* 3.5")  # of the first, nothing changed
    assert not by_calls(new, kept, calls[0]).ok
    assert by_calls(new, kept.replace("* 3.5", "* 3.0 * 1.0"), calls[0]).ok


TAIL = (
    HEAD
    + """

@tilelang.jit(out_idx=[2])
def f(M):
    @T.prim_func
    def main(A: T.Tensor((M, 64), "float32"), L: T.Tensor((1,), "int32"), B: T.Tensor((M, 64), "float32")):
        with T.Kernel(M // 32, threads=128) as bx:
            a = T.alloc_shared((32, 64), "float32")
            s = T.alloc_fragment((32,), "float32")
            r = T.alloc_fragment((32,), "float32")
            T.copy(A[bx * 32, 0], a)
            T.reduce_sum(a, s, dim=1)
            for i in T.Parallel(32):
                if bx * 32 + i < L[0]:
                    r[i] = 1.0 / s[i]
            for i, j in T.Parallel(32, 64):
                if bx * 32 + i < L[0]:
                    B[bx * 32 + i, j] = a[i, j] * r[i]

    return main
"""
)


def test_rows_behind_the_end_that_nothing_stores_may_be_undefined() -> None:
    new = migrate_text(TAIL, "k.py", Options()).new_text
    assert new is not None
    call = Call("f", {"M": 64}, {"L": "np.array([40])"})  # the second vector core of the second block has no row
    assert by_calls(TAIL, new, call).ok
    stored = new.replace("bx * 32 + i + vid * 16 < L[0]", "bx * 32 + i + vid * 16 < M")
    assert stored != new
    found = by_calls(TAIL, stored, call)
    assert not found.ok
    assert "leaves undefined data" in " ".join(d.message for d in found.diagnostics if d.code == "TL908")


SUMS = (
    HEAD
    + """

@tilelang.jit(out_idx=[1, 2])
def f(M):
    @T.prim_func
    def main(A: T.Tensor((M, 64), "float32"), S: T.Tensor((32, 64), "float32"), B: T.Tensor((M, 64), "float32")):
        with T.Kernel(M // 32, threads=128) as bx:
            a = T.alloc_shared((32, 64), "float32")
            T.copy(A[bx * 32, 0], a)
            for i, j in T.Parallel(32, 64):
                T.atomic_add(S[i, j], a[i, j])
            T.copy(a, B[bx * 32, 0])

    return main
"""
)
"""Nothing is the first value of the sums ``S``."""


def test_sums_that_both_kernels_begin_with_undefined_data() -> None:
    new = migrate_text(SUMS, "k.py", Options()).new_text
    assert new is not None
    call = Call("f", {"M": 64})
    found = by_calls(SUMS, new, call)
    assert found.ok, found.diagnostics
    assert "leaves undefined data in 2048 element(s) of S" in " ".join(d.message for d in found.diagnostics)
    assert not by_calls(SUMS, new.replace("T.copy(a, B", "T.tile.add(a, a, a)\n            T.copy(a, B"), call).ok
    old = SUMS.replace("T.Kernel(M // 32", "T.Kernel(1").replace("T.atomic_add(S[i, j], a[i, j])", "S[i, j] = a[i, j]")
    assert "TL908" in codes(by_calls(old, new, call))


PRODUCT = """
@tilelang.jit(out_idx=[2], pass_configs=pass_configs)
def product(K=512):
    @T.prim_func
    def main(A: T.Tensor((64, K), "float16"), B: T.Tensor((K, 64), "float16"), C: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((64, STEP), "float16")
            b = T.alloc_shared((STEP, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            for k in T.serial(K // STEP):
                T.copy(A[0, k * STEP], a)
                T.copy(B[k * STEP, 0], b)
                T.gemm_v0(a, b, c, init=(k == 0))
            T.copy(c, C[0, 0])

    return main
"""


@pytest.mark.parametrize("seed", [0, 2])
def test_what_is_left_where_most_sums_are_infinite(seed: int) -> None:
    """Of numbers up to 65504 nearly all products of rows overflow; the others are what cancelled in float32."""
    old, new = (HEAD + PRODUCT.replace("STEP", str(step)) for step in (32, 128))
    result = by_calls(old, new, Call("product", {"K": 512}), seed=seed)
    assert result.ok, [(d.code, d.message) for d in result.diagnostics]
    lost = new.replace("K // 128", "K // 128 - 1")
    assert not by_calls(old, lost, Call("product", {"K": 512}), seed=seed).ok
