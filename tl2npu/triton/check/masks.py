"""TL771 to TL774: loads whose masked lanes reach memory, arms of ``tl.where``, masks that are no bits, ``other``.

Sources: triton-lang/triton-ascend#2332 (masked lanes are still read), #2062 (a mask of int8), #2354 (``other`` without
``mask``), and Triton's own documentation of ``tl.where``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from tl2npu.codes import finding
from tl2npu.results import Diagnostic
from tl2npu.triton.check.names import Names
from tl2npu.triton.host.source import TritonFile


def check(file: TritonFile, name: str) -> Iterator[Diagnostic]:
    """Findings in the text of a kernel."""
    node = file.kernels[name]
    reader = _Reader(file, node)
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            for code, at, message in reader.call(call):
                yield finding(code, at.lineno, message, name)


class _Reader:
    """One kernel, with names in the place of the values that they are assigned."""

    def __init__(self, file: TritonFile, node: ast.FunctionDef) -> None:
        self.names = Names(file, node)
        self.values = self.names.values

    def call(self, call: ast.Call) -> Iterator[tuple[str, ast.expr, str]]:
        """Code, place and message of what is wrong with a call."""
        given = {word.arg: word.value for word in call.keywords if word.arg}
        function = self.names.function(call.func)
        if function == "where" and len(call.args) == 3:
            yield from self.arms(call)
        elif function in ("load", "store") and call.args:
            place = 1 if function == "load" else 2
            mask = given.get("mask") or next(iter(call.args[place:]), None)
            mask = None if isinstance(mask, ast.Constant) and mask.value is None else mask
            other = given.get("other") or (call.args[2] if function == "load" and len(call.args) > 2 else None)
            if mask is None and other is not None:
                text = f"`{ast.unparse(call)}` has `other` and no `mask`: triton-ascend does not compile that"
                yield "TL774", call, text
            if mask is not None:
                yield from self.masked(call, mask, function)

    def masked(self, call: ast.Call, mask: ast.expr, function: str) -> Iterator[tuple[str, ast.expr, str]]:
        if loaded := next((part for part in self.parts(mask) if self.is_loaded(part)), None):
            text = f"`{ast.unparse(loaded)}` is loaded and used as a mask: triton-ascend takes bits, not bytes"
            yield "TL773", call, text
        if function == "load" and (guard := self.below(self.names.written_out(call.args[0]), mask)):
            text = f"lanes without `{guard}` have addresses in front of `{self.names.root(call.args[0])}`"
            yield "TL771", call, f"{text}: triton-ascend reads them in spite of the mask"

    def parts(self, mask: ast.expr) -> Iterator[ast.expr]:
        """The operands of ``&`` and ``and``, as they are written."""
        if isinstance(mask, ast.BinOp) and isinstance(mask.op, ast.BitAnd):
            yield from self.parts(mask.left)
            yield from self.parts(mask.right)
        elif isinstance(mask, ast.BoolOp) and isinstance(mask.op, ast.And):
            for value in mask.values:
                yield from self.parts(value)
        elif isinstance(mask, ast.Name) and isinstance(self.values.get(mask.id), (ast.BinOp, ast.BoolOp)):
            yield from self.parts(self.values[mask.id])
        else:
            yield mask

    def is_loaded(self, part: ast.expr) -> bool:
        value = self.values.get(part.id) if isinstance(part, ast.Name) else part
        return isinstance(value, ast.Call) and self.names.function(value.func) == "load"

    def below(self, pointer: ast.expr, mask: ast.expr) -> str:
        """The comparison that keeps an offset of the pointer from being negative, as it is written."""
        inside = {ast.dump(part) for part in self.unclamped(pointer)}
        steps = [ast.dump(part.left) for part in self.unclamped(pointer) if _is_step_back(part)]
        for part in self.parts(mask):
            value = self.values.get(part.id, part) if isinstance(part, ast.Name) else part
            if not isinstance(value, ast.Compare) or len(value.ops) != 1:
                continue
            high, low = self.names.written_out(value.left), self.names.written_out(value.comparators[0])
            if isinstance(value.ops[0], (ast.LtE, ast.Lt)):
                high, low = low, high
            elif not isinstance(value.ops[0], (ast.GtE, ast.Gt)):
                continue
            if _is_zero(low) and any(ast.dump(high) in step for step in steps):
                return ast.unparse(value)
            gap = high if _is_zero(low) else ast.BinOp(high, ast.Sub(), low)
            if ast.dump(gap) in inside and any(_is_difference(item) for item in ast.walk(gap)):
                return ast.unparse(value)
        return ""

    def unclamped(self, node: ast.AST) -> Iterator[ast.AST]:
        """What is in an expression, but for what a minimum, maximum or choice keeps within bounds."""
        if isinstance(node, ast.Call) and self.names.function(node.func) in ("maximum", "minimum", "where", "clamp"):
            return
        yield node
        for part in ast.iter_child_nodes(node):
            yield from self.unclamped(part)

    def arms(self, call: ast.Call) -> Iterator[tuple[str, ast.expr, str]]:
        tests = (call.args[0], self.names.written_out(call.args[0]))
        test = {ast.dump(part) for whole in tests for part in ast.walk(whole) if isinstance(part, ast.Name)}
        for arm in call.args[1:]:
            for part in ast.walk(arm):
                if isinstance(part, ast.Call) and self.names.function(part.func) == "load" and not _has_mask(part):
                    text = f"`{ast.unparse(part)}` is read for every lane: tl.where computes both of its arms"
                    yield "TL772", call, text
                elif isinstance(part, ast.Call) and self.names.function(part.func) == "load":
                    yield from self.predecessor(call, part)
                elif isinstance(part, ast.BinOp) and isinstance(part.op, (ast.FloorDiv, ast.Mod)):
                    names = {ast.dump(item) for item in self.unclamped(part.right) if isinstance(item, ast.Name)}
                    if names and names <= test:
                        text = f"`{ast.unparse(part)}` is computed for every lane: tl.where computes both of its arms"
                        yield "TL772", call, text

    def predecessor(self, call: ast.Call, load: ast.Call) -> Iterator[tuple[str, ast.expr, str]]:
        """``tl.where(i == 0, 0, tl.load(p + i - 1, mask))``: lane 0 is read, in front of the tensor."""
        test, pointer = call.args[0], self.names.written_out(load.args[0])
        first = self.values.get(test.id, test) if isinstance(test, ast.Name) else test
        if not isinstance(first, ast.Compare) or not _is_zero(first.comparators[0]):
            return
        lane = ast.dump(self.names.written_out(first.left))
        steps = [part for part in self.unclamped(pointer) if _is_step_back(part) and lane in ast.dump(part.left)]
        mask = next((word.value for word in load.keywords if word.arg == "mask"), None) or load.args[1]
        guards = [part for part in ast.walk(self.names.written_out(mask)) if isinstance(part, ast.Compare)]
        if steps and not any(lane == ast.dump(part.left) and _is_zero(part.comparators[0]) for part in guards):
            text = f"the lane of `{ast.unparse(first)}` is read in front of `{self.names.root(load.args[0])}`"
            yield "TL772", call, f"{text}: tl.where computes both of its arms"


def _has_mask(call: ast.Call) -> bool:
    return len(call.args) > 1 or any(word.arg == "mask" for word in call.keywords)


def _is_zero(node: ast.expr) -> bool:
    text = ast.unparse(node)
    return text in ("0", "-1")


def _is_step_back(node: ast.AST) -> TypeGuard[ast.BinOp]:
    """Something minus a positive number."""
    return _is_difference(node) and isinstance(node.right, ast.Constant) and node.right.value not in (0, None)


def _is_difference(node: ast.AST) -> TypeGuard[ast.BinOp]:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
