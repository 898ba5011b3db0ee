"""Writes a layout into the kernel: allocations, gemms with their ``init``, and the copies between the homes."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.dialects.catalogue import Role
from tl2npu.kernel.access import changes, touches
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.element_types import is_known
from tl2npu.kernel.expressions import code
from tl2npu.kernel.memory.chains import Chain
from tl2npu.kernel.model import Branch, Buffer, Copy, Loop, Memory, Op, Operand, Scalar, Stmt, walk
from tl2npu.passes.gpu.memory.landing import needs_own_tile, read_whole, reader_takes_whole
from tl2npu.passes.gpu.memory.layout import Layout, ToL1
from tl2npu.passes.job import Job
from tl2npu.passes.names import constants
from tl2npu.passes.writing.plan import Line, Plan
from tl2npu.passes.writing.statements import Names, expression, parse

_F32 = "float32"
_WHOLE = "# TL133: what reads a product first takes all of it at once, and what is below goes by rows"
_ZEROS = "# TL624: what follows may add no product at all: the sum starts with a product of zeros"
_APART = "# TL133: a product is loaded for the first reader of its tile, and this tile has another one above"


class Assignment:
    """Writes a layout."""

    def __init__(self, job: Job, layout: Layout) -> None:
        self.job = job
        self.layout = layout
        self.plan = Plan(job)
        self.names = Names(job)
        self.new_allocations: dict[Buffer, list[str]] = {}
        self.operand_names: dict[tuple[int, Buffer], str] = {}
        self.product_names: dict[int, tuple[str, str]] = {}
        self.landed: set[Buffer] = set()
        self.zeros: dict[int, dict[str, tuple[str, int]]] = {}
        """By block and number of rows, the tiles of zeros in L1, each with the position where it is made."""

    def write(self) -> None:
        """Carry it out."""
        for chain in self.layout.chains:
            self._chain(chain)
        for buffer in {chain.buffer: None for chain in self.layout.chains}:
            if not self.layout.homes[buffer].ub:
                self._stage(buffer)
        for buffer in self.layout.loaded_twice:
            self._load_twice(buffer)
        handed: set[Buffer] = set()
        for item in self.layout.to_l1:
            name = self.names.fresh(f"{item.buffer.name}_l1")
            self._allocate(item.buffer, "shared", name)
            for gemm in item.gemms:
                self.operand_names[id(gemm), item.buffer] = name
            self._copy_to_l1(item, name, first=item.buffer not in handed)
            handed.add(item.buffer)
        for use in self.layout.uses.values():
            for gemm in use.product:
                self._gemm(gemm)
        for last in self.layout.tokens:
            self._token(last)
        for buffer in self.layout.uses:
            self._allocation(buffer)
        self.plan.apply()
        for loop, turns in self.layout.never_empty:
            nodes = (turns.start_node, turns.stop_node)
            first, end = (f"int({code(node)})" if node is not None else "0" for node in nodes)
            self.job.change("TL132", loop.node, "a product of no turns would be undefined: wrote an assertion")
            constants.define(self.job, [f'assert {end} > {first}, "no turn for the product"'])

    def _chain(self, chain: Chain) -> None:
        buffer = chain.buffer
        l0c = buffer.name
        both = self.layout.homes[buffer].ub
        if both:
            l0c = self.names.fresh(f"{buffer.name}_l0c")
            self._allocate(buffer, "fragment", l0c, self._accumulator_dtype(buffer))
        for number, gemm in enumerate(chain.gemms):
            self.product_names[id(gemm)] = l0c, chain.init if number == 0 else ""
        if chain.zero is not None and not chain.init:
            self._start_by_zeros(chain, chain.zero, l0c)
        elif chain.zero is not None:
            self._drop_zero(chain)
        if both:
            self._land(chain, l0c)

    def _start_by_zeros(self, chain: Chain, zero: Op, l0c: str) -> None:
        """A product of zeros, as narrow as the cube core multiplies: 16 columns of halves."""
        buffer = chain.buffer
        site = self.layout.places[id(zero)]
        lines, tiles = "", self.zeros.setdefault(id(site.body), {})
        for rows in (code(node) for node in buffer.shape_nodes):
            if tiles.get(rows, ("", site.position + 1))[1] > site.position:
                ub = self.names.fresh("zeros")
                tiles[rows] = self.names.fresh(f"{ub}_l1"), site.position
                made = [f'{name} = T.alloc_shared([{rows}, 16], "float16")' for name in (ub, tiles[rows][0])]
                self.new_allocations.setdefault(buffer, []).extend(made)
                lines += f"T.tile.fill({ub}, 0.0)\nT.copy({ub}, {tiles[rows][0]})\n"
        operands = ", ".join(tiles[code(node)][0] for node in buffer.shape_nodes)
        lines = f"{_ZEROS}\n{lines}T.gemm_v0({operands}, {l0c}, transpose_B=True, init=True)"
        self.plan.replace(zero.node, self._lines(lines, zero.node))
        self.job.change("TL624", zero.node, f"`{buffer.name}` starts with a product of zeros in L0C")

    def _drop_zero(self, chain: Chain) -> None:
        assert chain.zero is not None
        parent = self.layout.places[id(chain.zero)].parent
        if isinstance(parent, Branch) and len(parent.then) == 1 and not parent.orelse:
            self.plan.remove(parent.node)
        else:
            self.plan.remove(chain.zero.node)
        self.job.change("TL132", chain.zero.node, f"`{chain.buffer.name}` starts at zero: `init={chain.init}`")

    def _land(self, chain: Chain, l0c: str) -> None:
        """The copy out of L0C; its first reader must be a whole-tile operation (compiler-facts, rule 7)."""
        buffer = chain.buffer
        at = chain.anchor.node
        if not chain.added and buffer not in self.landed and read_whole(self.layout, chain):
            self.landed.add(buffer)
            self.plan.after(at, self._lines(f"T.copy({l0c}, {buffer.name})", at))
            self.job.change("TL133", at, f"`{buffer.name}` is copied to the vector cores")
            return
        part = self.names.fresh(f"{buffer.name}_part")
        self._allocate(buffer, "shared", part)
        if not chain.added:
            why = _APART if reader_takes_whole(self.layout, chain) else _WHOLE
            lines = self._lines(f"T.copy({l0c}, {part})\n{why}\nT.copy({part}, {buffer.name})", at)
            self.job.change("TL133", at, f"`{buffer.name}` is copied to the vector cores")
        else:
            rank = len(buffer.shape)
            index = ", ".join(self.names.variables(*_wishes(self.job, rank), inside=[at]))
            extents = ", ".join(code(node) for node in buffer.shape_nodes)
            lines = self._lines(
                f"T.copy({l0c}, {part})\nfor {index} in T.Parallel({extents}):\n"
                f"    {buffer.name}[{index}] += {part}[{index}]\n",
                at,
            )
            self.job.change("TL133", at, f"`{buffer.name}` is accumulated on the vector cores")
        self.plan.after(at, lines)

    def _stage(self, buffer: Buffer) -> None:
        """An author's copy of a product lands in a tile of its own where its first reader asks for it."""
        for copy in self.layout.kernel.walk():
            if not isinstance(copy, Copy) or copy.src.buffer is not buffer or copy.dst.buffer.memory is Memory.GM:
                continue
            whole = copy.src.is_whole and copy.dst.is_whole and copy.dst.buffer.shape == buffer.shape
            if (
                copy.via
                or not whole
                or not self.layout.homes[copy.dst.buffer].ub
                or not needs_own_tile(self.layout, copy)
            ):
                continue
            part = self.names.fresh(f"{buffer.name}_part")
            self._allocate(buffer, "shared", part, self._accumulator_dtype(buffer))
            text = f"T.copy({buffer.name}, {part})\n{_WHOLE}\nT.copy({part}, {copy.dst.buffer.name})"
            lines = self._lines(text, copy.node)
            self.plan.replace(copy.node, lines)
            self.job.change("TL133", copy.node, f"`{copy.dst.buffer.name}` is read row by row, or under a condition")

    def _copy_to_l1(self, item: ToL1, name: str, *, first: bool) -> None:
        """Right behind the statement that makes the tile, else before the gemm; a tile is handed over once only."""
        site = self.layout.places[id(item.anchor)]
        made = next((s for s in reversed(site.body[: site.position]) if changes(s, item.buffer)), None)
        source = item.buffer.name
        text = ""
        if not first:
            source = self.names.fresh(f"{item.buffer.name}_again")
            self._allocate(item.buffer, "shared", source)
            text = f"T.copy({item.buffer.name}, {source})\n"
        lines = self._lines(f"{text}T.copy({source}, {name})", item.anchor.node)
        chains = [chain for chain in self.layout.chains if chain.buffer is item.buffer]
        if made is None or any(touches(made, chain.buffer) for chain in chains):
            self.plan.before(item.anchor.node, lines)
        else:
            self.plan.after(made.node, lines)
        self.job.change("TL131", item.anchor.node, f"copied `{item.buffer.name}` to L1 for the gemm")

    def _load_twice(self, buffer: Buffer) -> None:
        name = self.names.fresh(f"{buffer.name}_l1")
        self._allocate(buffer, "shared", name)
        for gemm in self.layout.uses[buffer].operand:
            self.operand_names[id(gemm), buffer] = name
        for copy in self.layout.uses[buffer].loads:
            text = _call_with(copy, buffer, name)
            self.plan.after(copy.node, self._lines(text, copy.node))
            self.job.change("TL131", copy.node, f"`{buffer.name}` is loaded to UB and to L1")

    def _gemm(self, gemm: Op) -> None:
        product, init = self.product_names[id(gemm)]
        args = []
        for name, operand in gemm.operands:
            param = gemm.op.param(name)
            if param is not None and param.role is Role.ACCUMULATE:
                args.append(_renamed(operand, product, gemm))
            else:
                args.append(_renamed(operand, self.operand_names.get((id(gemm), operand.buffer)), gemm))
        for flag in ("transpose_A", "transpose_B"):
            value = gemm.args.get(flag)
            if isinstance(value, Scalar) and not value.sym.is_zero:
                args.append(f"{flag}={code(value.node)}")
        if init:
            args.append(f"init={init}")
        self.plan.replace(gemm.node, self._lines(f"T.gemm_v0({', '.join(args)})", gemm.node))
        self.job.change("TL132", gemm.node, f"gemm -> gemm_v0{f', init={init}' if init else ''}")

    def _token(self, last: Stmt) -> None:
        """A product of zeros that goes to the vector cores and back: the cube core makes it behind all others.

        Its multiplications are in order: when the vector cores have the token, it has read their tiles.
        """
        gemm = next(stmt for stmt in reversed([*walk([last])]) if isinstance(stmt, Op) and stmt.op.name == "gemm")
        ub, l1, l0c, back = (self.names.fresh(name) for name in ("token", "token_l1", "token_l0c", "token_back"))
        tiles = ((ub, "shared", "float16"), (l1, "shared", "float16"), (l0c, "fragment", _F32), (back, "shared", _F32))
        made = [f'{name} = T.alloc_{kind}([16, 16], "{dtype}")' for name, kind, dtype in tiles]
        product = next(buffer for buffer, use in self.layout.uses.items() if gemm in use.product)
        self.new_allocations.setdefault(product, []).extend(made)
        outermost = [*self.layout.places[id(last)].parents, last][0].node
        self.plan.before(outermost, self._lines(f"T.tile.fill({ub}, 0.0)", outermost))
        around = "# TL623: this product of zeros keeps the vector cores from overwriting a tile that is still read\n"
        around += f"T.copy({ub}, {l1})\nT.gemm_v0({l1}, {l1}, {l0c}, init=True)\n"
        around += f"T.copy({l0c}, {back})\nT.tile.mul({back}, {back}, 0.0)"
        self.plan.after(last.node, self._lines(around, last.node))
        self.job.change("TL623", last.node, f"the vector cores wait for `{ub}` before they go on")

    def _allocation(self, buffer: Buffer) -> None:
        own = self.layout.homes[buffer]
        kind = "shared" if own.ub or own.l1 else "fragment"
        dtype = self._accumulator_dtype(buffer) if kind == "fragment" else None
        more = self.new_allocations.get(buffer, [])
        same = buffer.alloc == f"alloc_{kind}" and dtype is None and not _has_scope(buffer)
        statement = buffer.statement
        if (same and not more) or statement is None:
            return
        if not same:
            self.job.change("TL130", statement, f"`{buffer.name}`: {buffer.alloc} -> alloc_{kind}")
            self.plan.replace(statement, [self._renamed(buffer, kind, dtype)])
        for line in more:
            self.plan.after(statement, self._lines(line, statement))

    def _accumulator_dtype(self, buffer: Buffer) -> str | None:
        """L0C holds 32-bit sums; what the GPU sums in half precision is summed in float32 (measured: g4_f16acc).

        A type that an argument gives is that of a float where the operands have it, too: integers of 8 bits are summed
        in int32.
        """
        half = buffer.dtype in ("float16", "bfloat16")
        named = not is_known(buffer.dtype) and any(
            operand.buffer.dtype == buffer.dtype
            for gemm in self.layout.uses[buffer].product
            for name, operand in gemm.operands
            if name in ("A", "B")
        )
        return '"float32"' if half or (buffer.dtype and named) else None

    def _renamed(self, buffer: Buffer, kind: str, dtype: str | None) -> Line:
        """The allocation as the author laid it out, by another operator."""
        call, statement = buffer.node, buffer.statement
        assert isinstance(call, cst.Call)
        if dtype is None and not _has_scope(buffer) and isinstance(statement, cst.Assign) and statement.value is call:
            func = expression(self.job, f"T.alloc_{kind}", call.func)
            return cst.SimpleStatementLine([statement.with_changes(value=call.with_changes(func=func))])
        (line,) = self._lines(f"{buffer.name} = {_allocate(buffer, kind, dtype)}", call)
        return line

    def _allocate(self, buffer: Buffer, kind: str, name: str, dtype: str | None = None) -> None:
        self.new_allocations.setdefault(buffer, []).append(f"{name} = {_allocate(buffer, kind, dtype)}")

    def _lines(self, text: str, at: cst.CSTNode) -> list[Line]:
        return list(parse(self.job, text, at))


def _allocate(buffer: Buffer, kind: str, dtype: str | None) -> str:
    """The call that allocates a tile of the same shape."""
    assert isinstance(buffer.node, cst.Call)
    args = []
    for number, arg in enumerate(buffer.node.args):
        keyword = arg.keyword.value if arg.keyword is not None else ("shape", "dtype", "scope")[min(number, 2)]
        if keyword in ("shape", "dtype"):
            text = dtype if keyword == "dtype" and dtype is not None else code(arg.value)
            args.append(f"{keyword}={text}" if arg.keyword is not None else text)
    return f"T.alloc_{kind}({', '.join(args)})"


def _has_scope(buffer: Buffer) -> bool:
    assert isinstance(buffer.node, cst.Call)
    return len(buffer.node.args) > 2 or any(a.keyword and a.keyword.value == "scope" for a in buffer.node.args)


def _renamed(operand: Operand, name: str | None, gemm: Op) -> str:
    if not operand.is_whole:
        raise Blocked("TL136", gemm.node, f"gemm_v0 needs whole tiles, and `{code(operand.node)}` is a part of one")
    return name if name is not None else operand.buffer.name


def _call_with(copy: Copy, old: Buffer, new: str) -> str:
    """The text of a copy with another destination."""
    args = []
    for number, arg in enumerate(copy.call.args):
        name = arg.keyword.value if arg.keyword is not None else ("src", "dst")[number] if number < 2 else ""
        text = code(arg.value)
        if name == "dst":
            text = new + text[len(old.name) :]
        args.append(f"{arg.keyword.value}={text}" if arg.keyword is not None else text)
    return f"T.copy({', '.join(args)})"


def _wishes(job: Job, rank: int) -> Sequence[tuple[str, ...]]:
    """Loop variables as the kernel calls them."""
    for stmt in job.kernel.walk():
        if isinstance(stmt, Loop) and stmt.kind == "parallel" and len(stmt.ranges) == rank:
            return [(item.name,) for item in stmt.ranges]
    return [("i",), ("j",), ("k",)][:rank] if rank <= 3 else [(f"i{n}",) for n in range(rank)]
