"""What the tile IR does not allow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tl2npu.kernel.symbolic import const, var
from tl2npu.tile.check import Malformed, check
from tl2npu.tile.expr import Const, Load, axis
from tl2npu.tile.ir import Buffer, Kernel, Launch, Map, Move, Origin, Reduce, Region
from tl2npu.tile.unused import without_unused
from tl2npu.tile.write.tilelang import Comments, factory

HERE = Origin(1)
X = Buffer("x", (var("n"),), "float32", "global")
TILE = Buffer("t", (const(8),), "float32", "shared")
LOAD = Move(Region("x", (var("b") * 8,), (const(8),)), Region("t", (const(0),), (const(8),)), HERE)
BACK = Move(LOAD.dst, LOAD.src, HERE)
KERNEL = Kernel("k", ("n",), (X,), Launch((var("n") // 8,), ("b",)), (TILE,), (LOAD, BACK))


def test_well_formed_kernel_is_printed() -> None:
    check(KERNEL)
    text = factory(KERNEL, {}, Comments({1: ["# in and out"]}, {}))
    assert "with T.Kernel(n // 8, threads=128) as b:" in text
    assert text.index("# in and out") < text.index("T.copy(x[b * 8], t)") < text.index("T.copy(t, x[b * 8])")


@pytest.mark.parametrize(
    "stmt",
    [
        Map("u", Const(0.0, "float32"), HERE),
        Map("t", Load("t", (axis(0), axis(1)), "float32"), HERE),
        Map("t", Load("t", (axis(1),), "float32"), HERE),
        Move(Region("x", (var("c"),), (const(8),)), LOAD.dst, HERE),
        Move(Region("x", (var("b"),), (const(4),)), LOAD.dst, HERE),
        Reduce("sum", "t", "t", 0, HERE),
    ],
)
def test_malformed_statement_is_found(stmt: Map | Move | Reduce) -> None:
    with pytest.raises(Malformed):
        check(replace(KERNEL, body=(stmt,)))


def test_tile_that_nothing_reads_goes() -> None:
    kernel = without_unused(replace(KERNEL, body=(LOAD,)))
    assert (kernel.body, kernel.tiles) == ((), ())
