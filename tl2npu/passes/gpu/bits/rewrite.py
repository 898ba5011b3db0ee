"""TL146: elements that are made of the bits of packed integers, one by one on the scalar unit.

The vector core shifts all elements of a tile by the same number of places, and has ``and`` and ``or`` of 16 bits only.
So ``(b[i, j // 2] >> (j % 2 * 4)) & 15`` becomes a loop over the elements; what is no integer in the same statement
stays with the vector core, which reads the integers from a tile. A float that is made of bits is cast from a variable:
the compiler has no text for one in the middle of an expression.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import libcst as cst

from tl2npu.kernel import element_types
from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import code, without_parentheses
from tl2npu.kernel.model import Buffer, Let, Store
from tl2npu.kernel.named_types import named_types
from tl2npu.passes.gpu.bits.integers import INT32, Integer, NoInteger, bits_of, converted
from tl2npu.passes.gpu.bits.reading import FUNCTIONS, WIDTH, Integers, uses
from tl2npu.passes.gpu.elementwise.nest import Nest, nests
from tl2npu.passes.gpu.elementwise.tree import number
from tl2npu.passes.gpu.elementwise.writing import comments_of
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import Names, factor, parse, shape_text
from tl2npu.passes.writing.tiles import allocate_above
from tl2npu.source.edits import Edits
from tl2npu.source.tree import children, names_in, replaced, walk

_BITS = (cst.BitAnd, cst.BitOr, cst.BitXor, cst.LeftShift, cst.RightShift, cst.BitInvert)
_INT16 = (-(1 << 15), (1 << 15) - 1)


def by_element(job: Job) -> None:
    """Write the nests of a kernel that take integers apart; a nest that is not understood stays as it is."""
    names, types = Names(job), named_types(job.module)
    edits, allocations = Edits(job.file.index), list[str]()
    first: Nest | None = None
    for nest in nests(job.kernel):
        if not any(map(_is_on_bits, walk(nest.node))):
            continue
        split = _Split(job, nest, names, types)
        try:
            split.read()
        except NoInteger:
            continue
        if not split.stores:
            continue
        first = first or nest
        allocations += split.allocations
        edits.replace_many(nest.node, parse(job, split.text(), nest.node))
        job.change("TL146", nest.node, "computed element by element: no vector instruction fits")
        count = " * ".join(factor(extent) for extent in nest.extents)
        text = f"{count} elements are computed one by one in each iteration: no vector instruction fits"
        job.note("TL146", nest.node, text)
    if first is None:
        return
    if allocations:
        allocate_above(job, edits, first.loops[0], "".join(allocations), first.node)
    job.apply(edits)


@dataclass(frozen=True, eq=False)
class _Value:
    """An integer, or with ``bits`` the float of that type that has its bits."""

    integer: Integer
    bits: str = ""


@dataclass
class _Split:
    """A nest, and the two that it becomes: ``stores`` on the scalar unit, ``rest`` on the vector core."""

    job: Job
    nest: Nest
    names: Names
    types: Mapping[str, frozenset[str]]
    stores: list[tuple[str, str, _Value]] = field(default_factory=list)
    allocations: list[str] = field(default_factory=list)
    _rest: list[cst.CSTNode] = field(default_factory=list)
    _lets: dict[str, Integer] = field(default_factory=dict)
    _floats: dict[str, _Value] = field(default_factory=dict)
    _written: list[Buffer] = field(default_factory=list)
    _tiles: dict[tuple[str, str], str] = field(default_factory=dict)

    def read(self) -> None:
        """Part the statements; raises :class:`NoInteger` for a nest that cannot be parted."""
        self.integers = Integers(self.job, self.nest)
        for stmt in self.nest.body:
            env = stmt.env
            if isinstance(stmt, Let) and isinstance(stmt.node, (cst.Assign, cst.AnnAssign)):
                if not self._is_local(stmt, env):
                    self._rest.append(self._without_bits(stmt, env))
            elif isinstance(stmt, Store):
                if not self._is_scalar(stmt, env):
                    self._rest.append(self._without_bits(stmt, env))
            else:
                raise NoInteger
        if self.stores:
            self._leave_out_unused()
            self._check()

    # -- reading ------------------------------------------------------------------------------------------------------

    def _is_local(self, stmt: Let, env: Env) -> bool:
        """Whether a name stands for a value of the scalar loop only."""
        name = stmt.name
        if name in self.integers.local or name in self._floats:
            raise NoInteger
        value = self._value(stmt.value.node, env)
        if value is None:
            return False
        if value.bits:
            self._floats[name] = value
            return True
        integer = value.integer
        if integer.text in self._lets or integer.plain or integer.is_literal:
            self.integers.local[name] = integer  # another name, or a number
        else:
            self._lets[name] = integer
            named = replace(integer, expr=number(name), widest=(integer.low, integer.high), names=frozenset({name}))
            self.integers.local[name] = named
        return _is_of_bits(value)

    def _value(self, node: cst.BaseExpression, env: Env) -> _Value | None:
        bare = without_parentheses(node)
        if type(bare) is cst.Name and bare.value in self._floats:
            return self._floats[bare.value]
        try:
            found = self.integers.of_float(node, env)
            return _Value(self.integers.read(node, env)) if found is None else _Value(found[1], found[0])
        except NoInteger:
            return None

    def _is_scalar(self, stmt: Store, env: Env) -> bool:
        """Whether a store is done in the scalar loop as a whole."""
        buffer = stmt.target.buffer
        if stmt.augmented or not buffer.is_tile or stmt.target.loads:
            return False
        value = self._value(stmt.value.node, env)
        if value is None or not _is_of_bits(value):
            return False
        dtype = element_types.plain(buffer.dtype)
        known = element_types.is_known(dtype)
        given = self.types.get(dtype, frozenset())
        if value.bits:
            if dtype != value.bits and (known or not given <= {value.bits}):
                return False
        elif known and element_types.is_integer(dtype):
            value = _Value(converted(value.integer, dtype))
        elif known or not all(map(element_types.is_integer, given)):
            return False
        text = f'"{dtype}"' if known else element_types.text_of(buffer.dtype)
        self._written.append(buffer)
        self.stores.append((code(stmt.target.node), text, value))
        return True

    def _without_bits(self, stmt: Let | Store, env: Env) -> cst.CSTNode:
        """The statement with elements of new tiles for what the scalar loop computes."""
        found = stmt.node
        for part, above in list(self._parts(stmt.value.node, None, env)):
            value = self._value(part, env)
            assert value is not None
            found = replaced(found, {id(part): cst.parse_expression(self._tile(value, part, above, env))})
        return found

    def _parts(
        self, node: cst.CSTNode, above: cst.CSTNode | None, env: Env
    ) -> Iterator[tuple[cst.BaseExpression, cst.CSTNode | None]]:
        """The largest parts of an expression that are made of bits, each with what it stands in."""
        if isinstance(node, cst.BaseExpression):
            value = self._value(node, env)
            if value is not None and _is_of_bits(value):
                yield node, above
                return
        inner = node if not isinstance(node, (cst.Arg, cst.Index, cst.SubscriptElement)) else above
        for child in children(node):
            yield from self._parts(child, inner, env)

    def _tile(self, value: _Value, part: cst.BaseExpression, above: cst.CSTNode | None, env: Env) -> str:
        dtype = value.bits or self._tile_type(value.integer, part, above, env)
        key = value.integer.text, dtype
        if key not in self._tiles:
            name = self._tiles[key] = self.names.fresh("unpacked")
            shape = shape_text(self.job.kernel, self.nest.extents)
            self.allocations.append(f'{name} = T.alloc_shared({shape}, "{dtype}")\n')
            given = value if value.bits else _Value(converted(value.integer, dtype))
            self.stores.append((self._element(name), f'"{dtype}"', given))
        return self._element(self._tiles[key])

    def _element(self, name: str) -> str:
        return f"{name}[{', '.join(self.nest.names)}]"

    def _tile_type(self, value: Integer, part: cst.BaseExpression, above: cst.CSTNode | None, env: Env) -> str:
        """The type of a tile of integers: a short one where nothing but a conversion reads it."""
        if not value.fits(INT32):
            raise NoInteger
        if type(above) is cst.BinaryOperation:
            other = above.right if part is above.left else above.left
            known = self.integers.reading.expression(other, env).dtype
            is_converted = bool(known) and not element_types.is_integer(known)
        else:
            is_converted = above is None or isinstance(above, (cst.Call, cst.Attribute))
        if not is_converted and bits_of(value.dtype) < 32:
            raise NoInteger  # the rest of the sum may be one of fewer bits
        return "int16" if is_converted and value.fits(_INT16) else "int32"

    # -- proofs -------------------------------------------------------------------------------------------------------

    def _leave_out_unused(self) -> None:
        """Names that only the scalar loop needs."""
        lets = [stmt.node for stmt in self.nest.body if isinstance(stmt, Let)]
        for position in reversed(range(len(self._rest))):
            node = self._rest[position]
            after = {name.value for later in self._rest[position + 1 :] for name in names_in(later)}
            if any(node is let for let in lets) and not after & {name.value for name in _targets(node)}:
                del self._rest[position]

    def _check(self) -> None:
        """The scalar loop runs first: it reads nothing that the nest stores, but for the very element that it stores
        itself, and what it stores nothing else uses."""
        stores = {stmt.target.buffer: code(stmt.target.node) for stmt in self.nest.body if isinstance(stmt, Store)}
        own = {buffer: stores[buffer] for buffer in self._written if buffer in stores}
        read = [load.buffer for load in self.integers.loads if own.get(load.buffer) != code(load.node)]
        env = self.nest.body[0].env
        used = [b for node in self._rest for b in self.job.located.evaluator.buffers_in(node, env)]
        if any(buffer in stores for buffer in read):
            raise NoInteger
        if any(self._written.count(buffer) > 1 or buffer in used for buffer in self._written):
            raise NoInteger

    # -- text ---------------------------------------------------------------------------------------------------------

    def text(self) -> str:
        """The loops that take the place of the nest."""
        lines: list[str] = []
        said: set[str] = set()
        widest = [value.integer.widest for _, _, value in self.stores]
        for target, dtype, value in self.stores:
            for name in uses(value.integer, self._lets):
                if name not in said:
                    said.add(name)
                    widest.append(self._lets[name].widest)
                    lines.append(f"{name} = {self._lets[name].text}\n")
            if value.bits:
                bits = self.names.fresh(f"{target.split('[')[0]}_bits")
                unsigned = f"uint{bits_of(value.integer.dtype)}"  # the compiler puts no variable of one in its use
                lines.append(f'{bits} = T.cast({value.integer.text}, "{unsigned}")\n')
                lines.append(f'{target} = T.reinterpret("{value.bits}", {bits})\n')
            else:
                lines.append(f"{target} = T.cast({value.integer.text}, {dtype})\n")
        width = "int32" if all(INT32[0] <= low and high <= INT32[1] for low, high in widest) else "int64"
        text = "".join(lines).replace(WIDTH, f'"{width}"')
        for name, extent in reversed(list(zip(self.nest.names, self.nest.extents, strict=True))):
            text = f"for {name} in T.serial({extent}):\n" + textwrap.indent(text, "    ")
        comments = [comment for stmt in self.nest.body for comment in comments_of(self.job, stmt)]
        text = "".join(f"{comment}\n" for comment in comments) + text
        if self._rest:
            body = "".join(f"{code(node)}\n" for node in self._rest)
            header = f"for {', '.join(self.nest.names)} in T.Parallel({', '.join(self.nest.extents)}):\n"
            text += header + textwrap.indent(body, "    ")
        return text


def _is_on_bits(node: cst.CSTNode) -> bool:
    """Whether a node may be an operator on bits; most nests have none, and are not read."""
    if type(node) is cst.Call:
        name = node.func.attr if type(node.func) is cst.Attribute else node.func
        return type(name) is cst.Name and (name.value == "reinterpret" or name.value in FUNCTIONS)
    return isinstance(getattr(node, "operator", None), _BITS)


def _is_of_bits(value: _Value) -> bool:
    return value.integer.loads and (bool(value.bits) or value.integer.of_bits)


def _targets(node: cst.CSTNode) -> Iterator[cst.Name]:
    if type(node) is cst.Assign:
        for target in node.targets:
            yield from names_in(target)
    elif type(node) is cst.AnnAssign:
        yield from names_in(node.target)
