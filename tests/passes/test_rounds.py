"""Every pass that goes in rounds does all of its work, however much there is."""

from __future__ import annotations

import re
from collections.abc import Callable

import libcst as cst
import numpy as np
import pytest

from tests.passes.gpu.one_pass import after, job_of
from tests.passes.gpu.support import gpu_file, migrated
from tests.passes.simulated import run
from tl2npu.kernel.blocked import Blocked
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.passes import rounds
from tl2npu.passes.gpu import atomics, scalar_functions
from tl2npu.passes.gpu.element_copies import rewrite as element_copies
from tl2npu.passes.gpu.memory import homes
from tl2npu.passes.job import Job
from tl2npu.passes.npuir import bodies
from tl2npu.passes.plain.branches import known as known_branches
from tl2npu.passes.plain.loops import continues as loops_continue
from tl2npu.passes.plain.loops import nests as loops_nests
from tl2npu.passes.plain.loops import normal as loops
from tl2npu.passes.plain.macros import inline as macros
from tl2npu.passes.plain.types import strings as types
from tl2npu.passes.rounds import until_settled
from tl2npu.source.edits import Edits

MANY = 45
PARAMS = "A: T.Tensor((32, 16), 'float32'), B: T.Tensor((32, 16), 'float32')"
LAUNCH = "T.Kernel(1, threads=128) as bx"
START = "a = T.alloc_fragment((32, 16), 'float32')\nT.copy(A, a)\n"
END = "T.copy(a, B)\n"
IMPORTS = "import tilelang\nimport tilelang.language as T\n\n\n"


def kernel(piece: Callable[[int], str], *, many: int = MANY, head: str = IMPORTS, args: str = "") -> str:
    body = START + "".join(piece(n) for n in range(many)) + END
    return gpu_file(PARAMS, body, launch=LAUNCH, head=head, args=args)


def stepped(n: int) -> str:
    return f"for k in T.serial(0, 8, 2):\n    a[k, {n % 16}] = a[k, {n % 16}] + {n}\n"


def continued(n: int) -> str:
    return f"for k in T.serial(8):\n    if k == {n % 8}:\n        continue\n    a[k, 0] = a[k, 0] + {n}\n"


def chosen(n: int) -> str:
    return f"a[{n % 32}, 0] = {n} if a[{n % 32}, 1] > 0 else a[{n % 32}, 2]\n"


def nested(n: int) -> str:
    return f"for i in T.Parallel(32):\n    for k in T.serial(4):\n        a[i, k] = a[i, k] + {n}\n"


def vectors(n: int) -> str:
    return f"for k in T.vectorized(16):\n    a[{n % 32}, k] = a[{n % 32}, k] * 2\n"


def moved(n: int) -> str:
    return f"for i, j in T.Parallel(32, 16):\n    a[i, j] = a[i, j] + A[i, j] * {n}\n"


def added(n: int) -> str:
    return f"for i, j in T.Parallel(32, 16):\n    T.atomic_add(B[i, j], a[i, j] * {n})\n"


def function(n: int) -> str:
    return f"a[{n % 32}, 0] = T.exp(a[{n % 32}, 1])\n"


PASSES = [
    pytest.param(loops.normalise, stepped, r"T\.serial\([^)]*,", id="steps"),
    pytest.param(loops_continue.drop_continues, continued, "continue", id="continues"),
    pytest.param(loops.normalise, chosen, " if .* else ", id="choices"),
    pytest.param(loops_nests.untangle, nested, r"T\.Parallel\(32\):\n +for", id="nests"),
    pytest.param(loops_nests.untangle, vectors, "vectorized", id="vectors"),
    pytest.param(element_copies.to_copies, moved, r"A\[i, j\]", id="element copies"),
    pytest.param(atomics.to_tile, added, r"atomic_add\(B\[i", id="atomics"),
    pytest.param(scalar_functions.to_tiles, function, r", 0\] = T\.exp", id="functions of single values"),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("step", "piece", "gone"), PASSES)
def test_nothing_is_left(step: Callable[[Job], None], piece: Callable[[int], str], gone: str) -> None:
    text = kernel(piece)
    assert len(re.findall(gone, text)) == MANY
    assert re.findall(gone, after(step, text)) == []


def test_known_branches() -> None:
    text = kernel(lambda n: f"if flag:\n    a[0, 0] = {n}\nelse:\n    a[0, 1] = {n}\n", args="flag")
    text = text.replace("    @T.prim_func", "    if flag:\n        return None\n\n    @T.prim_func")
    assert len(re.findall(" if flag:", after(known_branches.fold, text))) == 1


def test_macros_in_macros() -> None:
    """Each calls the next; 45 levels are 45 rounds."""
    defs = "".join(
        f"@T.macro\ndef m{n}(x):\n    " + (f"m{n + 1}(x)" if n + 1 < MANY else "x[0, 0] = x[0, 0] + 3") + "\n\n\n"
        for n in reversed(range(MANY))
    )
    new = after(macros.inline, kernel(lambda n: "m0(a)\n", many=1, head=IMPORTS + defs))
    assert "m0(" not in new
    assert "a[0, 0] = a[0, 0] + 3" in new


@pytest.mark.thorough
def test_macros_that_launch() -> None:
    """Each launches and calls the next."""
    deep = MANY
    lines = ["@tilelang.jit(out_idx=[1])", "def factory():"]
    for n in reversed(range(deep)):
        lines += ["    @T.macro", f"    def f{n}(X, Y):"]
        lines += ["        with T.Kernel(1, threads=128) as bx:"]
        lines += [f"            tile{n} = T.alloc_fragment((32, 16), 'float32')"]
        lines += [f"            T.copy(X, tile{n})", f"            T.copy(tile{n}, Y)"]
        lines += [f"        f{n + 1}(X, Y)", ""] if n + 1 < deep else [""]
    lines += [
        "    @T.prim_func",
        f"    def main({PARAMS}):",
        "        f0(A, B)",
        f"        f{deep - 1}(A, B)",
        "",
        "    return main",
    ]
    text = IMPORTS + "\n".join(lines) + "\n"
    result = migrate_text(text, "k.py", Options())
    assert result.error is None
    assert {kernel.disposition for kernel in result.kernels} == {"migrated"}, result.diagnostics
    assert result.new_text is not None
    assert "f0(" not in result.new_text
    assert result.new_text.count("is_npu=True") == deep + 1


def test_types_in_types() -> None:
    """Each cast stands in the one around it."""
    value = "a[0, 0]"
    for n in range(MANY):
        value = f"T.cast({value}, T.float{16 if n % 2 else 32})"
    new = after(types.to_strings, kernel(lambda n: f"a[0, 0] = {value}\n", many=1))
    assert re.findall(r"T\.float\d+", new) == []
    assert new.count('"float') + new.count("'float") >= MANY


def test_accumulators_that_all_go_through_the_vector_cores() -> None:
    """One decision in a round: the operands of a loop that hands products over in one direction only."""
    params = [
        "A: T.Tensor((16, 64), 'float16')",
        "W: T.Tensor((64, 64), 'float16')",
        "B: T.Tensor((16, 64), 'float32')",
    ]
    body = (
        "x = T.alloc_shared((16, 64), 'float16')\nw = T.alloc_shared((64, 64), 'float16')\nT.copy(A, x)\nT.copy(W, w)\n"
    )
    many = MANY
    for n in range(many):
        body += f"c{n} = T.alloc_fragment((16, 64), 'float32')\ns{n} = T.alloc_fragment((16, 64), 'float32')\n"
    for n in range(many):
        body += f"for k{n} in T.serial(4):\n    T.gemm(x, w, c{n}, clear_accum=True)\n"
        body += f"    for i, j in T.Parallel(16, 64):\n        s{n}[i, j] = s{n}[i, j] + c{n}[i, j]\n"
    body += "T.copy(s0, B)\n"
    for n in range(many):
        body = body.replace(f"for k{n} in", f"T.clear(s{n})\nfor k{n} in", 1)
        body = body.replace(f"T.gemm(x, w, c{n},", f"T.gemm(x{n}, w, c{n},")
        body = f"x{n} = T.alloc_shared((16, 64), 'float16')\nT.copy(A, x{n})\n" + body
    job = job_of(gpu_file(", ".join(params), body, launch=LAUNCH))
    homes.assign(job)
    assert job.module.code.count("_l1 = T.alloc") >= many


def test_bodies_of_vector_loops() -> None:
    names = "".join(f"    q{n} = i + {n}\n" for n in range(MANY))
    total = " + ".join(f"q{n}" for n in range(MANY))
    loop = f"for i, j in T.Parallel(32, 16):\n{names}    a[i, j] = T.if_then_else({total} >= j, T.exp(a[i, j]), 0.0)\n"
    new = after(bodies.straighten, kernel(lambda _: loop, many=1))
    assert re.findall(r"^ +q\d+ =", new, re.MULTILINE) == []


@pytest.mark.thorough
@pytest.mark.parametrize("many", [45, 100])
def test_stepped_loops_are_migrated_to_the_last(many: int) -> None:
    """Hand-checked: loop n adds n to rows 0, 2, 4, 6 of column n % 16."""
    given = np.random.default_rng(2).integers(-9, 9, (32, 16)).astype(np.float32)
    expected = given.copy()
    for n in range(many):
        expected[0:8:2, n % 16] += n
    new = migrated(kernel(stepped, many=many))
    assert re.findall(r"T\.serial\([^)]*,", new) == []
    np.testing.assert_array_equal(run(new, {"A": given}, "factory", ())["B"], expected)


def test_a_step_that_changes_nothing_is_refused() -> None:
    with pytest.raises(Blocked, match="does not end"):
        until_settled(job_of(kernel(stepped, many=1)), lambda: True)


def test_a_step_that_does_not_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It adds nothing to the tree and changes it for ever."""
    monkeypatch.setattr(rounds, "_PER_NODE", 1)
    job = job_of(kernel(stepped, many=1))

    def turn() -> bool:
        node = next(node for node in job.file.index.statements if isinstance(node, cst.For))
        edits = Edits(job.file.index)
        edits.replace(node, node.deep_clone())
        job.apply(edits)
        return True

    with pytest.raises(Blocked, match="does not end") as caught:
        until_settled(job, turn)
    assert caught.value.code == "TL902"


def test_a_step_that_grows_the_tree_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "_PER_NODE", 0.1)
    job = job_of(kernel(stepped, many=1))

    def turn() -> bool:
        node = next(node for node in job.file.index.statements if isinstance(node, cst.For))
        edits = Edits(job.file.index)
        edits.replace_many(node, [node, node.deep_clone()])
        job.apply(edits)
        return True

    with pytest.raises(Blocked, match="does not end"):
        until_settled(job, turn)
