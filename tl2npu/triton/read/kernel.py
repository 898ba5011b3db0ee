"""A Triton kernel, as one launch uses it, as a kernel of the tile IR."""

from __future__ import annotations

import ast
from dataclasses import replace

from tl2npu.kernel.symbolic import Div, Sym, const
from tl2npu.kernel.symbolic import Opaque as Wrapped
from tl2npu.source.tree import remembered
from tl2npu.tile.axes import Axes
from tl2npu.tile.columns import without_columns
from tl2npu.tile.expr import Index, axis_of
from tl2npu.tile.ir import Buffer, For, Kernel, Launch, Let, Map, Matmul, Move, statements, writes
from tl2npu.tile.named_sums import with_named_sums
from tl2npu.tile.names import names, numbers, run_time_scalars
from tl2npu.tile.narrow import with_narrow_tiles
from tl2npu.tile.orientation import Crossed, with_straight_tiles
from tl2npu.tile.persistent import with_block_per_tile
from tl2npu.tile.unstored import is_unstored
from tl2npu.tile.unused import without_unused
from tl2npu.triton.read.asked import equate
from tl2npu.triton.read.choices import truncates
from tl2npu.triton.read.interpreter import Interpreter, Returned
from tl2npu.triton.read.names import live_in
from tl2npu.triton.read.ranges import WITHIN, Ranges
from tl2npu.triton.read.spec import Again, Spec, Tensor
from tl2npu.triton.read.stale import with_plain_copies
from tl2npu.triton.read.state import Frame, State
from tl2npu.triton.read.values import Tile, Value
from tl2npu.triton.refused import Refused, Unequal

_ROUNDS = 60
_BLOCKS = ("bx", "by", "bz")


def read(spec: Spec, reader: type[Interpreter] = Interpreter) -> Kernel:
    """The kernel. What the host must check is then in ``equal``, ``divides``, ``least`` and ``within`` of the spec.

    ``reader``: the interpreter of an extension. Raises ``Refused``.
    """
    for _ in range(_ROUNDS):
        spec.stale = False
        try:
            kernel = _once(spec, reader)
            if not spec.stale:
                return kernel
        except Again:
            continue
        except Refused:
            if not spec.stale:
                raise
        except ZeroDivisionError:
            raise Refused(
                "TL550", spec.function.lineno, "the launch passes sizes by which a division is by zero"
            ) from None
    raise Refused("TL521", spec.function.lineno, "the shapes of the tensors cannot be settled")


def _once(spec: Spec, kind: type[Interpreter]) -> Kernel:
    _settle(spec)
    state = State(spec)
    params = [
        arg.arg for arg in (*spec.function.args.posonlyargs, *spec.function.args.args, *spec.function.args.kwonlyargs)
    ]
    values = {name: spec.values[name] for name in params}
    for name in spec.pinned & values.keys():
        values[name] = spec.numbers[name]
    state.taken |= {*params, *spec.names, *spec.tensors}
    state.blocks = _block_names(spec, state)
    last = {name: extent - 1 for name, extent in zip(state.blocks, spec.grid, strict=True)}
    state.ranges = Ranges(last, proofs=spec.proofs)
    state.ranges.divides |= set(spec.divides)
    state.ranges.sure, state.ranges.shown = spec.sizes(), spec.smallest()
    state.frames.append(Frame(values))
    reader = kind(state)
    reader.live = live_in(spec.function)
    try:
        reader.run(spec.function.body)
    except Returned as returned:
        if returned.value is not None:
            raise state.refuse("TL543", "the kernel returns a value") from None
    except Unequal as found:
        if equate(state, *_undivided(found.one, found.other)):  # Triton combines no others
            raise Again from None
        raise
    except RecursionError:
        raise state.refuse("TL544", "device functions call each other") from None
    body = tuple(state.out)
    spec.least = {name: least for name, least in state.ranges.assumed.items() if name not in state.ranges.sure}
    spec.within = list(state.within)
    spec.narrow = state.ranges.narrow
    tensors = tuple(
        Buffer(name, spec.views[name], spec.tensors[name].held, "global")
        for name in params
        if name in spec.tensors and name in state.used
    )
    launch = Launch(spec.grid, state.blocks)
    kernel = Kernel(spec.function.name, (), tensors, launch, tuple(state.buffers.values()), body)
    try:
        kernel = with_plain_copies(reader.finished(kernel))
        whole = without_columns(kernel)
        kernel = with_straight_tiles(without_unused(whole))
    except Crossed as found:
        message = f"`{found.tile}` is used transposed together with tiles that are not"
        raise Refused("TL547", found.line, message) from None
    again = state.gathered & {name for stmt in statements(kernel.body) for name in writes(stmt)}
    if again:
        raise Refused("TL523", spec.function.lineno, f"the places in `{min(again)}` change in the kernel")
    if any(isinstance(atom, Wrapped) and atom.head == WITHIN for n in numbers(kernel) for atom in n.atoms()):
        raise Refused("TL520", spec.function.lineno, "an index that is 0 behind the end of an axis")
    for stmt in statements(kernel.body):
        if isinstance(stmt, Map) and kernel.buffers[stmt.dst].shape and truncates(stmt.value):
            text = f"`{stmt.dst}` divides what may be negative, element by element"
            line = stmt.origin.line if stmt.origin else spec.function.lineno
            raise Refused("TL546", line, text, "divide on the host, and pass a tensor of the quotients")
    axes = Axes(kernel)
    useful = {param for param, beyond in state.beyond if not is_unstored(kernel, beyond, axes)}
    if useful:
        spec.strict |= useful
        raise Again
    scoped = _with_scopes(kernel)
    kernel = with_block_per_tile(scoped)
    if kernel == scoped:  # only here: what is decided above goes by the terms of integers
        kernel = _with_scopes(with_straight_tiles(without_unused(with_named_sums(whole))))
    inner = {stmt.var for stmt in statements(kernel.body) if isinstance(stmt, For)}
    inner |= {stmt.name for stmt in statements(kernel.body) if isinstance(stmt, Let)}
    free = {name for name in names(kernel) if axis_of(name) is None} - inner - set(kernel.launch.names)
    scalars = tuple(name for name in params if name in free & run_time_scalars(kernel) - spec.numbers.keys())
    free -= set(scalars)
    order = [name for name in params if name in free] + sorted(free - set(params))
    return with_narrow_tiles(replace(kernel, sizes=tuple(order), scalars=scalars))


def _undivided(one: Sym, other: Sym) -> tuple[Sym, Sym]:
    """Two sizes of tiles without a division that both have: sizes of tiles are powers of two."""
    left, right = one.atom, other.atom
    if isinstance(left, Div) and isinstance(right, Div) and left.den == right.den:
        return _undivided(left.num, right.num)
    return one, other


def _settle(spec: Spec) -> None:
    """Put in what became known of the sizes."""
    known = dict(spec.known)
    for name in spec.pinned:
        number = spec.numbers[name]
        if isinstance(number, int):
            known[name] = const(int(number))
            if name in spec.multiples:
                known[spec.part(name, spec.multiples[name])] = const(int(number) // spec.multiples[name])
    for _ in range(len(known)):
        known = {name: value.substitute(known) for name, value in known.items()}

    def put(value: Value) -> Value:
        if isinstance(value, tuple):
            return tuple(map(put, value))
        if isinstance(value, Tile) and isinstance(value.expr, Index):
            return Tile(value.shape, Index(value.expr.value.substitute(known)))
        return value

    spec.values = {name: put(value) for name, value in spec.values.items()}
    spec.grid = tuple(extent.substitute(known) for extent in spec.grid)
    spec.divides = [(one.substitute(known), other.substitute(known)) for one, other in spec.divides]
    spec.views = {name: tuple(e.substitute(known) for e in view) for name, view in spec.views.items()}
    spec.failed = {(name, tuple(e.substitute(known) for e in view)) for name, view in spec.failed}
    for name, tensor in spec.tensors.items():
        if tensor.shape is not None:
            spec.tensors[name] = Tensor(tuple(extent.substitute(known) for extent in tensor.shape), tensor.dtype)


def _block_names(spec: Spec, state: State) -> tuple[str, ...]:
    """The names that the author gives to the places in the grid."""
    found = _places(spec.function)
    return tuple(state.fresh(found.get(number, _BLOCKS[number])) for number in range(len(spec.grid)))


@remembered
def _places(function: ast.FunctionDef) -> dict[int, str]:
    """The first name for ``program_id`` of each axis."""
    found: dict[int, str] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            call = node.value
            while isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "to":
                call = call.func.value
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "program_id":
                args = [*call.args, *(word.value for word in call.keywords)]
                if args and isinstance(args[0], ast.Constant) and isinstance(args[0].value, int):
                    found.setdefault(args[0].value, node.targets[0].id)
    return found


def _with_scopes(kernel: Kernel) -> Kernel:
    """Tiles that are loaded or multiplied are shared, others are fragments."""
    shared: set[str] = set()
    for stmt in statements(kernel.body):
        if isinstance(stmt, Matmul):
            shared |= {stmt.a, stmt.b}
        elif isinstance(stmt, Move):
            shared.add(stmt.dst.buffer)
    products = {stmt.c for stmt in statements(kernel.body) if isinstance(stmt, Matmul)}
    tiles = tuple(
        Buffer(tile.name, tile.shape, tile.dtype, "shared" if tile.name in shared - products else "fragment")
        for tile in kernel.tiles
    )
    return replace(kernel, tiles=tiles)
