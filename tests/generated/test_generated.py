"""A fixed sample of random kernels, and proof that broken passes are found; ``python -m tests.generated`` goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from tests.generated import program as p
from tests.generated.judge import CAUGHT, DISCARDED, HAZARD, OK, PARTIAL, WITH_ERRORS
from tests.generated.oracle import run
from tests.generated.search import reduced, verdict_of
from tests.generated.shrinking import length
from tests.generated.styles import STYLES
from tests.generated.values import Discard
from tl2npu.checks import run as checks
from tl2npu.checks.cross_core import races
from tl2npu.kernel.memory.liveness import Liveness

SAMPLE = {"gpu": 32, "legacy": 32, "npuir": 40, "triton": 24}
PARTS = 4
SIZE = p.Name("N")
ROW, COLUMN = p.Name("i"), p.Name("j")


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("style", sorted(SAMPLE))
def test_random_kernels_are_right_or_refused(style: str, part: int) -> None:
    kinds: Counter[str] = Counter()
    for seed in range(part, SAMPLE[style], PARTS):
        verdict = verdict_of(style, seed)
        kinds[verdict.kind] += 1
        if verdict.is_fault:
            pytest.fail(
                f"python -m tests.generated {style} --seed {seed} --count 1\n{reduced(style, seed, verdict, 300).text}"
            )
    judged = sum(kinds.values()) - kinds[DISCARDED]
    assert kinds[OK] + kinds[PARTIAL] > judged / 3, f"most programs test nothing: {kinds}"


def _tiles_never_meet(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Liveness, "conflicts", lambda *_: False)  # what decides whether two tiles may be one


def _no_races(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(checks, "CHECKS", tuple(check for check in checks.CHECKS if check is not races.check))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("style", "breaks", "kind", "first"),
    [
        ("gpu", _tiles_never_meet, CAUGHT, 3),
        ("triton", _tiles_never_meet, CAUGHT, 18),
        ("legacy", _no_races, HAZARD, 69),
    ],
    ids=["gpu", "triton", "legacy"],
)
def test_a_missing_condition_is_found(
    style: str, breaks: Callable[[pytest.MonkeyPatch], None], kind: str, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``first``: where to begin looking; the programs before it show nothing, as of today."""
    breaks(monkeypatch)
    seed, verdict = next((s, v) for s, v in ((s, verdict_of(style, s)) for s in range(first, first + 60)) if v.is_fault)
    assert verdict.kind == kind
    small = reduced(style, seed, verdict, 30)
    assert small.verdict.kind == kind
    assert len(small.text) < len(STYLES[style].text(STYLES[style].draw(seed)))
    monkeypatch.undo()
    assert not verdict_of(style, seed).is_fault


def kernel(body: tuple[p.Stmt, ...], at_once: bool = False) -> p.Program:
    """One block with a tile ``a`` of N rows and columns, loaded from X and stored to Y."""
    whole = p.Region("a", (p.Const(0),) * 2, (SIZE, SIZE))
    tensors = tuple(p.Buffer(name, "float32", (SIZE, SIZE), kind) for name, kind in (("X", "in"), ("Y", "out")))
    copies = [
        p.Copy(p.Region("X", whole.starts, whole.lengths), whole),
        p.Copy(whole, p.Region("Y", whole.starts, whole.lengths)),
    ]
    tiles = (p.Buffer("a", "float32", (SIZE, SIZE), "shared"), p.Buffer("r", "float32", (SIZE,), "shared"))
    launch = p.Launch((("b", p.Const(1)),), tiles, (copies[0], *body, copies[1]))
    return p.Program((("N", 4),), tensors, (launch,), (("at_once", at_once),))


def loop(target: p.Ref, value: p.Expr) -> p.Parallel:
    return p.Parallel(("i", "j"), (SIZE, SIZE), (p.Assign(target, value),))


A = p.Ref("a", (ROW, COLUMN))
MIRRORED = p.Ref("a", (ROW, p.Bin("-", p.Const(3), COLUMN)))
X = np.arange(16, dtype=np.float32).reshape(4, 4) - 7


def result(program: p.Program) -> np.ndarray:
    return np.asarray(run(program, {"X": X})["Y"].value)


def test_the_oracle_reads_before_it_writes() -> None:
    assert (result(kernel((loop(A, MIRRORED),), at_once=True)) == X[:, ::-1]).all()
    with pytest.raises(Discard, match="another one read"):
        result(kernel((loop(A, MIRRORED),)))
    first = p.Ref("a", (ROW, p.Const(0)))
    assert (result(kernel((loop(A, first),))) == X[:, :1].repeat(4, 1)).all()  # it writes what was there


def test_the_oracle_knows_conditions_reductions_and_what_is_unwritten() -> None:
    negative = p.Bin("<", A, p.Const(0.0))
    assert (result(kernel((loop(A, p.Select(negative, p.Un("neg", A), A)),))) == abs(X)).all()
    row = p.Ref("r", (ROW,))
    with pytest.raises(Discard, match="read before"):
        result(kernel((loop(A, p.Bin("+", A, row)),)))
    assert (
        result(kernel((p.Reduce("max", "a", "r", 1), loop(A, p.Bin("-", A, row))))) == X - X.max(1, keepdims=True)
    ).all()


def test_what_cannot_be_known_judges_nothing() -> None:
    halves = p.Cast("float16", p.Bin("/", A, p.Const(3.0)))
    unsure = p.Select(p.Bin("<", halves, p.Cast("float16", p.Bin("*", A, p.Const(1 / 3)))), p.Const(1.0), p.Const(0.0))
    slack = np.asarray(run(kernel((loop(A, unsure),)), {"X": X})["Y"].slack)
    assert (slack[X != 0] >= 1).all()
    overflow = p.Cast("float16", p.Bin("*", A, p.Const(1e5)))
    slack = np.asarray(run(kernel((loop(A, overflow),)), {"X": X})["Y"].slack)
    assert (np.isinf(slack) == (X != 0)).all()


def test_a_kernel_that_check_calls_wrong_is_told_so() -> None:
    """The vector cores' halves of a kernel whose own ``T.max`` the compiler dies of: ``migrated with errors``."""
    assert verdict_of("legacy", 40748).kind == WITH_ERRORS


def test_programs_are_made_smaller_to_what_matters() -> None:
    from tests.generated.shrinking import shrunk

    program = STYLES["gpu"].draw(3)
    small = shrunk(program, lambda q: any(isinstance(n, p.Parallel) for n in p.nodes(q)))
    assert length(small) < length(program) / 3
