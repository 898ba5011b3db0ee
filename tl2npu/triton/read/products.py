"""What ``tl.dot`` gives."""

from __future__ import annotations

import ast

from tl2npu.tile.expr import Const, Load, axis
from tl2npu.tile.ir import Matmul
from tl2npu.triton.read import build
from tl2npu.triton.read.calls import Calls
from tl2npu.triton.read.values import DType, Tile, Value

_HALF = ("float16", "bfloat16")


class Products(Calls):
    """Evaluates products of matrices."""

    def tl_dot(self, node: ast.Call) -> Value:
        return self.product(self.operands(node), node)

    def operands(self, node: ast.Call) -> dict[str, Value]:
        """The arguments of ``tl.dot``, matrices as they are multiplied."""
        names = "input other acc input_precision allow_tf32 max_num_imprecise_acc out_dtype"
        values = self.bound(node, f"{names} trans_a trans_b")
        for name, turned in (("input", "trans_a"), ("other", "trans_b")):  # of Triton 2.0
            if values.pop(turned, False) is True:
                values[name] = build.transposed(self.tile_of(values[name], node))
        return values

    def of_one_type(self, *operands: Tile) -> None:
        """Triton multiplies matrices of one type: a tensor of which nothing shows it has that of the other operand."""
        spec = self.state.spec
        for one, other in (operands, operands[::-1]):
            names = [name for name in self.state.tensors(one.expr) if name in spec.assumed]
            names = [name for name in names if spec.tensors[name].dtype == one.dtype == "float32"]
            if len(names) == 1:
                spec.multiplied.add(names[0])
                if other.dtype in _HALF:
                    self.state.take_type(names[0], other.dtype)

    def product(self, values: dict[str, Value], node: ast.Call) -> Value:
        """``tl.dot``: both operands in tiles, the sum in a tile of its own or on top of ``acc``."""
        state = self.state
        one, other = (self.tile_of(values[name], node) for name in ("input", "other"))
        if len(one.shape) != 2 or len(other.shape) != 2 or one.shape[1] != other.shape[0]:
            raise state.refuse("TL548", f"`{ast.unparse(node)}`: the operands are not matrices that fit")
        self.of_one_type(one, other)
        dtype = "int32" if not build.is_float(one.dtype) else "float32"
        out = values.get("out_dtype")
        left, right = state.stored(one, f"{state.hint}_a"), state.stored(other, f"{state.hint}_b")
        assert isinstance(left.expr, Load)
        assert isinstance(right.expr, Load)
        shape = (one.shape[0], other.shape[1])
        turned = [self.turned(item, node) for item in (left, right)]
        acc = values.get("acc")
        clear = acc is None or (isinstance(acc, Tile) and isinstance(acc.expr, Const) and acc.expr.value == 0)
        if clear:
            into = state.target(node, "dot", shape, dtype)
        else:
            assert acc is not None
            into = state.accumulator(node, build.broadcast(self.tile_of(acc, node), shape), dtype)
        if into in (left.expr.buffer, right.expr.buffer):
            into = state.allocate(f"{state.hint}_dot", shape, dtype)
        state.emit(Matmul(left.expr.buffer, right.expr.buffer, into, clear, turned[0], turned[1], state.origin))
        found = Tile(shape, Load(into, (axis(0), axis(1)), dtype))
        if isinstance(out, DType) and out.name != dtype:
            return state.stored(build.cast(found, out.name), f"{state.hint}_rounded")
        return found
