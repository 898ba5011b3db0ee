"""One function with ``tle.gpu`` as text with ``tle.dsa``.

Source of both sides: FlagFFT's documentation of TLE; ``to_buffer(tensor, space, bind_buffer)`` of FlagTree writes the
tensor into the buffer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tl2npu.dialects.triton.tle import REFUSED, SHARED, tle_name
from tl2npu.triton.dsa.function import Function
from tl2npu.triton.host.rewrite import Splice
from tl2npu.triton.read.names import Live
from tl2npu.triton.refused import Refused

_TRANSPARENT = ("trans",)
_VIEWS = frozenset({"trans", "reshape", "view", "expand_dims", "broadcast_to", "permute", "cast"})
"""Functions whose result may be the memory of their first argument."""


def uses_gpu(function: Function) -> bool:
    """True if a function uses ``tle.gpu``."""
    return any((function.name(item) or "").startswith("gpu.") for item in ast.walk(function.node))


class Rewrite:
    """The changes of one function. ``tle``: the name of the package in the new text, ``tl`` that of the language.

    ``handled``: the names of imports that are gone from the text. Raises Refused.
    """

    def __init__(self, function: Function, tle: str, tl: str) -> None:
        self.function, self.tle, self.tl = function, tle, tl
        self.splices: list[Splice] = []
        self.handled: set[tuple[int, int]] = set()
        self.gone: set[int] = set()
        self.dropped = {
            name: stmts[0]
            for name, stmts in function.pointers.items()
            if function.once(name) and self.whole_of(stmts[0].value) is not None
        }
        self.check_uses()
        self.check_lifetimes()
        for stmt in (*self.dropped.values(), *self.hints()):
            self.drop(stmt)
        self.unused()
        self.visit(function.node)

    # what must hold -----------------------------------------------------------------------------------------------

    def check_uses(self) -> None:
        """Pointers are only loaded from and stored to."""
        function = self.function
        fine = {id(pointer) for call in self.accesses() if (pointer := self.pointer(call)) is not None}
        fine |= {id(stmt.value) for stmts in function.pointers.values() for stmt in stmts}
        for item in ast.walk(function.node):
            named = isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load) and item.id in function.pointers
            if (named or function.name(item) == "gpu.local_ptr") and id(item) not in fine:
                raise function.refuse(
                    item, f"`{ast.unparse(item)}` is used as a pointer, which `tle.dsa` does not have"
                )
        for name, stmts in function.pointers.items():
            if len(stmts) != len(function.set[name]):
                raise function.refuse(stmts[0], f"`{name}` is not always a pointer into a buffer")

    def check_lifetimes(self) -> None:
        """A tensor of a buffer is its memory: it must not be read once the buffer is written again."""
        function = self.function
        reads: dict[str, str] = {}
        for _ in range(len(function.assigned)):
            for name, assigned in function.assigned.items():
                if (buffer := self.seen(assigned.value, reads)) is not None:
                    reads[name] = buffer
        live = Live(function.node.body)
        for stmt in function.statements():
            if isinstance(stmt, ast.Return) and stmt.value is not None and self.seen(stmt.value, reads) is not None:
                raise function.refuse(stmt, "the tensor of a buffer is returned, and the buffer may be written again")
            for buffer in self.written(stmt):
                for name, owner in reads.items():
                    if owner == buffer and name in live.after(stmt):
                        text = f"`{name}` is read after `{buffer}`, whose memory it is, is written again"
                        raise function.refuse(stmt, text)

    def seen(self, node: ast.expr, reads: Mapping[str, str]) -> str | None:
        """The buffer whose memory a tensor is, or may be; ``reads``: those of names."""
        function = self.function
        if isinstance(node, ast.Name):
            return reads.get(node.id)
        if isinstance(node, ast.Call) and function.language(node) == "load":
            return self.buffer_of(self.pointer(node))
        if isinstance(node, ast.Attribute) and node.attr == "T":
            return self.seen(node.value, reads)
        if isinstance(node, ast.Subscript):
            return self.seen(node.value, reads)
        if isinstance(node, ast.Call) and function.language(node) in _VIEWS and node.args:
            return self.seen(node.args[0], reads)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {*_VIEWS, "to"}:
            return self.seen(node.func.value, reads)
        return None

    def hints(self) -> Iterator[ast.stmt]:
        """Assignments of a tensor to itself that only name a memory."""
        for name, stmt in self.function.assigned.items():
            match stmt.value:
                case ast.Call(args=[ast.Name(id=given), *_]) if given == name:
                    if self.function.name(stmt.value) == "gpu.memory_space":
                        yield stmt

    def written(self, stmt: ast.stmt) -> Iterator[str]:
        """The buffers that a statement without statements in it may write."""
        function = self.function
        if hasattr(stmt, "body"):
            return
        for call in ast.walk(stmt):
            if not isinstance(call, ast.Call):
                continue
            name = function.name(call)
            if function.language(call) == "store" and (buffer := self.buffer_of(self.pointer(call))) is not None:
                yield buffer
            elif name == "gpu.copy" and isinstance(target := function.argument(call, 1, "dst"), ast.Name):
                yield target.id
            elif name is None and function.language(call) is None:  # a device function may write what it is given
                yield from (arg.id for arg in call.args if isinstance(arg, ast.Name))

    def accesses(self) -> Iterator[ast.Call]:
        """Every load and store."""
        for item in ast.walk(self.function.node):
            if isinstance(item, ast.Call) and self.function.language(item) in ("load", "store"):
                yield item

    def pointer(self, call: ast.Call) -> ast.expr | None:
        """The pointer of a load or store, if it leads into a buffer."""
        node = self.function.argument(call, 0, "pointer")
        if isinstance(node, ast.Name) and node.id in self.function.pointers:
            return node
        return node if node is not None and self.function.name(node) == "gpu.local_ptr" else None

    def buffer_of(self, pointer: ast.expr | None) -> str | None:
        """The name of the buffer that a pointer leads into."""
        if isinstance(pointer, ast.Name):
            pointer = self.function.pointers[pointer.id][0].value
        buffer = self.function.argument(pointer, 0, "buffer") if isinstance(pointer, ast.Call) else None
        if pointer is not None and not isinstance(buffer, ast.Name):
            raise self.function.refuse(pointer, f"`{ast.unparse(pointer)}`: the buffer has no name")
        return buffer.id if isinstance(buffer, ast.Name) else None

    # memory -------------------------------------------------------------------------------------------------------

    def whole_of(self, node: ast.expr) -> str | None:
        """The buffer of which a call of ``local_ptr`` names all elements, if its name always means that buffer."""
        assert isinstance(node, ast.Call)
        buffer = self.buffer_of(node)
        if buffer is None or _slices(self.function, node) is not None:
            return None
        fixed = buffer in self.function.allocations or (
            buffer in self.function.params and buffer not in self.function.set
        )
        return buffer if fixed else None

    def space(self, name: str) -> str:
        """The memory of a buffer: L1 if it is only read for products, else UB."""
        function = self.function
        reads = 0
        for item in ast.walk(function.node):
            if isinstance(item, ast.Call) and function.name(item) not in ("gpu.alloc", "gpu.local_ptr"):
                pointer = self.pointer(item) if function.language(item) in ("load", "store") else None
                if pointer is not None and self.buffer_of(pointer) == name:
                    if function.language(item) == "store" or not self.feeds_product(item):
                        return "UB"
                    reads += 1
                elif any(isinstance(arg, ast.Name) and arg.id == name for arg in item.args):
                    target = function.argument(item, 1, "dst")
                    filled = isinstance(target, ast.Name) and target.id == name and function.name(item) == "gpu.copy"
                    if not filled:
                        return "UB"
        return "L1" if reads else "UB"

    def feeds_product(self, load: ast.Call) -> bool:
        """True if a loaded tensor goes into products only."""
        function = self.function
        fed = {id(node) for node in self.operands()}
        if id(load) in fed:
            return True
        names = [name for name, stmt in function.assigned.items() if stmt.value is load]
        uses = [
            item
            for item in ast.walk(function.node)
            if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load) and item.id in names
        ]
        return bool(uses) and all(id(item) in fed for item in uses)

    def operands(self) -> Iterator[ast.expr]:
        """What products multiply, transposed or not."""
        for item in ast.walk(self.function.node):
            if isinstance(item, ast.Call) and self.function.language(item) == "dot":
                for node in (self.function.argument(item, 0, "input"), self.function.argument(item, 1, "other")):
                    inner = node
                    while True:
                        if isinstance(inner, ast.Call) and self.function.language(inner) in _TRANSPARENT:
                            inner = inner.args[0]
                        elif isinstance(inner, ast.Attribute) and inner.attr == "T":
                            inner = inner.value
                        else:
                            break
                    if inner is not None:
                        yield inner

    # text ---------------------------------------------------------------------------------------------------------

    def visit(self, node: ast.AST) -> None:
        """Rewrite an expression or statement, and what is in it."""
        if id(node) in self.gone:
            return
        if isinstance(node, ast.Call) and self.call(node):
            return
        path = self.function.path(node) if isinstance(node, (ast.Attribute, ast.Name)) else None
        if path is not None and tle_name(path) is not None and node is not self.function.node:
            raise self.foreign(node, tle_name(path) or "")
        for child in ast.iter_child_nodes(node):
            if child not in self.function.node.decorator_list:
                self.visit(child)

    def call(self, node: ast.Call) -> bool:
        """Rewrite a call; False if it stays, and what is in it is to be looked at."""
        function, name = self.function, self.function.name(node)
        if function.language(node) in ("load", "store") and (pointer := self.pointer(node)) is not None:
            self.access(node, self.buffer(pointer), store=function.language(node) == "store")
            return True
        match name:
            case None:
                return False
            case "gpu.alloc":
                self.alloc(node)
            case "gpu.copy":
                if function.argument(node, 3, "offsets") is not None:
                    raise function.refuse(node, f"`{ast.unparse(node)}` copies by a descriptor")
                self.renamed(node, f"{self.tle}.dsa.copy")
            case "gpu.local_ptr":
                self.replace(node, self.buffer(node))
            case "gpu.pipeline":
                self.renamed(node, f"{self.tle}.dsa.pipeline")
            case "gpu.memory_space":
                inner = function.source(node.args[0])
                plain = isinstance(node.args[0], (ast.Name, ast.Call, ast.Subscript, ast.Attribute))
                self.replace(node, inner if plain else f"({inner})")
            case "load":
                words = [word for word in node.keywords if word.arg != "is_async"]
                parts = [*map(function.source, node.args), *(f"{w.arg}={function.source(w.value)}" for w in words)]
                self.replace(node, f"{self.tl}.load({', '.join(parts)})")
            case _:
                raise self.foreign(node, name)
        return True

    def foreign(self, node: ast.AST, name: str) -> Refused:
        """A name of TLE that ``tle.dsa`` does not have."""
        code = REFUSED.get(name, "TL595")
        return Refused(code, getattr(node, "lineno", 1), f"`{ast.unparse(node)}` has no counterpart in `tle.dsa`")

    def alloc(self, node: ast.Call) -> None:
        function = self.function
        shape, dtype = function.argument(node, 0, "shape"), function.argument(node, 1, "dtype")
        scope = function.argument(node, 3, "scope")
        words = {word.arg for word in node.keywords}
        path = function.path(scope) if scope is not None else None
        if scope is not None and not (path and tle_name(path) in SHARED):
            raise function.refuse(node, f"the memory of `{ast.unparse(node)}` is none of an NPU")
        if shape is None or dtype is None or words & {"alias", "alias_offset_bytes", "init_value"}:
            raise function.refuse(node, f"`{ast.unparse(node)}` has no counterpart in `tle.dsa`")
        names = [name for name, stmt in function.assigned.items() if stmt.value is node and function.once(name)]
        if not names:
            raise function.refuse(node, f"`{ast.unparse(node)}` is not assigned to one name of its own")
        space = f"{self.tle}.dsa.ascend.{self.space(names[0])}"
        shape_text, dtype_text = function.source(shape), function.source(dtype)
        self.replace(node, f"{self.tle}.dsa.alloc({shape_text}, dtype={dtype_text}, mem_addr_space={space})")

    def buffer(self, pointer: ast.expr) -> str:
        """The text of the buffer, or the part of one, that a pointer leads to."""
        function = self.function
        if isinstance(pointer, ast.Name):
            if pointer.id not in self.dropped:
                return pointer.id
            pointer = self.dropped[pointer.id].value
        assert isinstance(pointer, ast.Call)
        name, parts = self.buffer_of(pointer), _slices(function, pointer)
        if parts is None:
            return name or ""
        starts, sizes = (f"[{', '.join(texts)}]" for texts in ([p.start for p in parts], [p.size for p in parts]))
        return f"{self.tle}.dsa.subview({name}, {starts}, {sizes}, [{', '.join('1' for _ in parts)}])"

    def access(self, node: ast.Call, buffer: str, store: bool) -> None:
        """A load from a buffer or a store to it."""
        function = self.function
        mask = function.argument(node, 2 if store else 1, "mask")
        other = None if store else function.argument(node, 2, "other")
        tensor = f"{self.tle}.dsa.to_tensor({buffer}, writable=True)"
        if not store:
            if mask is not None and other is not None:
                tensor = f"{self.tl}.where({function.source(mask)}, {tensor}, {function.source(other)})"
            self.replace(node, tensor)
            return
        value = function.argument(node, 1, "value")
        assert value is not None
        front, back = f"{self.tle}.dsa.to_buffer(", f", {self.tle}.dsa.ascend.UB, bind_buffer={buffer})"
        if mask is not None:
            front, back = f"{front}{self.tl}.where({function.source(mask)}, ", f", {tensor}){back}"
        self.splice(node, value, front, back)
        self.visit(value)

    def renamed(self, node: ast.Call, name: str) -> None:
        """A call of another function with the same arguments."""
        self.replace(node.func, name)
        for child in (*node.args, *node.keywords):
            self.visit(child)

    def replace(self, node: ast.expr, text: str) -> None:
        """Another text for an expression."""
        self.note(node)
        end = node.end_lineno or node.lineno, node.end_col_offset or 0
        self.splices.append(Splice((node.lineno, node.col_offset), end, text))

    def splice(self, node: ast.expr, inner: ast.expr, front: str, back: str) -> None:
        """Other text around a part of an expression."""
        self.note(node, inner)
        start, end = (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0)
        last = inner.end_lineno or inner.lineno, inner.end_col_offset or 0
        self.splices.append(Splice(start, (inner.lineno, inner.col_offset), front))
        self.splices.append(Splice(last, end, back))

    def note(self, node: ast.AST, kept: ast.AST | None = None) -> None:
        """The imported names in an expression are gone, but for a part of it."""
        for item in ast.walk(node):
            if isinstance(item, ast.Name):
                self.handled.add((item.lineno, item.col_offset))
        for item in ast.walk(kept) if kept is not None else ():
            if isinstance(item, ast.Name):
                self.handled.discard((item.lineno, item.col_offset))

    def drop(self, stmt: ast.stmt) -> None:
        """Leave a statement out, if others are left beside it."""
        if any(other is not stmt and other.lineno == stmt.lineno for other in self.function.statements()):
            raise self.function.refuse(stmt, "several statements stand on one line")
        self.note(stmt)
        self.gone.add(id(stmt))
        last = (stmt.end_lineno or stmt.lineno) + 1
        self.splices.append(Splice((stmt.lineno, 0), (last, 0), ""))

    def unused(self) -> None:
        """Index tensors that only pointers needed go with them."""
        function = self.function
        while True:
            needed: set[str] = set()
            inside = {id(item) for stmt in function.statements() if id(stmt) in self.gone for item in ast.walk(stmt)}
            replaced = {id(item) for call in self.calls() for item in ast.walk(call)}
            for item in ast.walk(function.node):
                if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load) and id(item) not in inside | replaced:
                    needed.add(item.id)
            asked = {
                item.id
                for item in ast.walk(function.node)
                if isinstance(item, ast.Name) and id(item) in inside | replaced
            }
            found = [
                stmt
                for name, stmt in function.assigned.items()
                if name in asked - needed and id(stmt) not in self.gone and function.once(name) and self.is_index(stmt)
            ]
            if not found:
                return
            for stmt in found:
                self.drop(stmt)

    def calls(self) -> Iterator[ast.expr]:
        """The indices in calls of ``local_ptr``, which become slices."""
        for item in ast.walk(self.function.node):
            if isinstance(item, ast.Call) and self.function.name(item) == "gpu.local_ptr":
                given = self.function.argument(item, 1, "indices", "offsets")
                if given is not None:
                    yield given

    def is_index(self, stmt: ast.Assign) -> bool:
        """True if a statement computes index tensors and nothing else."""
        return any(self.function.language(item) in ("arange", "broadcast_to") for item in ast.walk(stmt.value))


# Index tensors of ``local_ptr`` as slices: a start and a number of consecutive elements along each axis.

_DEPTH = 12


@dataclass(frozen=True)
class Slice:
    """``start`` and ``size`` as text; ``axis`` of ``rank`` axes of the index tensor along which it runs."""

    start: str
    size: str
    axis: int
    rank: int


def _slices(function: Function, call: ast.Call) -> tuple[Slice, ...] | None:
    """The slices that a call of ``local_ptr`` names; None for the whole buffer."""
    given = function.argument(call, 1, "indices", "offsets")
    if given is None or (isinstance(given, ast.Constant) and given.value is None):
        return None
    parts = given.elts if isinstance(given, (ast.Tuple, ast.List)) else [given]
    found = [_slice(function, part, 0) for part in parts]
    wanted = [(place, len(parts)) for place in range(len(parts))]
    if any(item is None for item in found) or [(item.axis, item.rank) for item in found if item] != wanted:
        raise function.refuse(call, f"`{ast.unparse(given)}` is not a slice of the buffer; `tle.dsa` has no pointers")
    known = tuple(item for item in found if item is not None)
    return None if _covers(function, call, known) else known


def _covers(function: Function, call: ast.Call, parts: tuple[Slice, ...]) -> bool:
    """True if slices are all of a buffer that the function allocates."""
    buffer = function.argument(call, 0, "buffer")
    stmt = function.allocations.get(buffer.id) if isinstance(buffer, ast.Name) else None
    shape = function.argument(stmt.value, 0, "shape") if stmt is not None and isinstance(stmt.value, ast.Call) else None
    if not isinstance(shape, (ast.List, ast.Tuple)):
        return False
    return [("0", ast.unparse(extent)) for extent in shape.elts] == [(part.start, part.size) for part in parts]


def _slice(function: Function, node: ast.expr, depth: int) -> Slice | None:
    if depth > _DEPTH:
        return None
    if isinstance(node, ast.Name) and function.once(node.id) and node.id in function.assigned:
        return _slice(function, function.assigned[node.id].value, depth + 1)
    if isinstance(node, ast.Call):
        if function.language(node) == "arange" and len(node.args) == 2 and ast.unparse(node.args[0]) == "0":
            return Slice("0", ast.unparse(node.args[1]), 0, 1)
        if function.language(node) == "broadcast_to" and node.args:
            return _slice(function, node.args[0], depth + 1)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            return _slice(function, node.func.value, depth + 1)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        inner = _slice(function, node.value, depth + 1)
        kept = [place for place, part in enumerate(node.slice.elts) if isinstance(part, ast.Slice)]
        if inner is not None and inner.rank == 1 and len(kept) == 1:
            return Slice(inner.start, inner.size, kept[0], len(node.slice.elts))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        for one, other in ((node.left, node.right), (node.right, node.left)):
            inner = _slice(function, one, depth + 1)
            if inner is not None and _scalar(function, other, depth + 1):
                start = ast.unparse(other) if inner.start == "0" else f"{inner.start} + {ast.unparse(other)}"
                return Slice(start, inner.size, inner.axis, inner.rank)
    return None


def _scalar(function: Function, node: ast.expr, depth: int) -> bool:
    """True for an integer that means the same wherever it stands behind its assignment."""
    if depth > _DEPTH:
        return False
    match node:
        case ast.Constant():
            return isinstance(node.value, int)
        case ast.BinOp():
            return _scalar(function, node.left, depth + 1) and _scalar(function, node.right, depth + 1)
        case ast.Name() if node.id not in function.set:
            return node.id in function.params
        case ast.Name() if function.once(node.id):
            stmt = function.assigned.get(node.id)
            return stmt is None or _scalar(function, stmt.value, depth + 1)
        case ast.Call():
            return function.language(node) == "program_id"
    return False
