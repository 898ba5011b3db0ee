"""What the parser of a prim_func makes of Python: it evaluates every part of an expression before the whole.

Source: tilelang/language/parser/parser.py and the evaluator of TVMScript that it uses (``ExprEvaluator._visit``), run
with a kernel for each construct. So both arms of a conditional expression and all operands of ``and`` and ``or`` are
evaluated, a chain of comparisons goes from left to right as if it had parentheses, and names that only an expression
binds do not exist.
"""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import libcst as cst

from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.callers import Caller
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.languages import lookup
from tl2npu.kernel.model import Kernel
from tl2npu.kernel.parser.scalar_types import exact, family
from tl2npu.kernel.parser.scopes import Found, Surroundings
from tl2npu.kernel.parser.statements import FrontEnd
from tl2npu.kernel.parser.values import ODD, SOME_ITEMS, UNKNOWN, WIDE, Parsed, joined, of_python
from tl2npu.source.tree import names_in, nodes_of, remembered

_IMPORTS: tuple[type[cst.Import | cst.ImportFrom], ...] = (cst.Import, cst.ImportFrom)
_NAMED: tuple[type[cst.FunctionDef | cst.ClassDef], ...] = (cst.FunctionDef, cst.ClassDef)
_BUILTINS = frozenset(dir(builtins))


@dataclass(frozen=True, eq=False)
class Guarded:
    """Uses of a name where it may be None, in a part of an expression that Python would leave out then."""

    name: str
    whole: cst.BaseExpression
    uses: tuple[cst.Name, ...]


def optional(functions: Iterable[cst.CSTNode]) -> frozenset[str]:
    """The parameters of functions whose default is None."""
    found = (
        param for node in functions if isinstance(node, cst.FunctionDef) for param in nodes_of(node.params, cst.Param)
    )
    return frozenset(param.name.value for param in found if param.default is not None and code(param.default) == "None")


def truths(body: cst.CSTNode, names: Container[str]) -> Iterator[cst.Name]:
    """``if w:`` where w may be None, which the parser takes for a condition of the device."""
    for node in nodes_of(body, cst.If):
        if isinstance(node.test, cst.Name) and node.test.value in names:
            yield node.test


def guarded(body: cst.CSTNode, names: Container[str] = ()) -> Iterator[Guarded]:
    """``f(w) if w is not None else 0``, ``w is None or x < w``: the parser evaluates ``f(None)`` and ``x < None``.

    ``names`` may be None, so that ``f(w) if w else 0`` counts as well.
    """
    for node in nodes_of(body, cst.IfExp, cst.BooleanOperation):
        if isinstance(node, cst.IfExp):
            test, parts = node.test, [node.body, node.orelse]
        else:
            assert isinstance(node, cst.BooleanOperation)
            test, parts = node.left, [node.right]
        asked = {part.value for part in _operands(test) if isinstance(part, cst.Name) and part.value in names}
        for name in sorted(compared_with_none(test) | asked):
            uses = [use for part in parts for use in _uses(part, name)]
            if uses:
                yield Guarded(name, node, tuple(uses))


def _operands(test: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """What decides a condition: the operands of ``and``, ``or`` and ``not`` in it."""
    if isinstance(test, cst.BooleanOperation):
        yield from _operands(test.left)
        yield from _operands(test.right)
    elif isinstance(test, cst.UnaryOperation):
        yield from _operands(test.expression)
    else:
        yield test


def compared_with_none(test: cst.BaseExpression) -> set[str]:
    """The names that a condition compares with None."""
    return {code(node.left) for node in nodes_of(test, cst.Comparison) if isinstance(node.left, cst.Name) and _is(node)}


def _is(node: cst.Comparison) -> bool:
    operators = (cst.Is, cst.IsNot, cst.Equal, cst.NotEqual)
    return any(isinstance(item.operator, operators) and code(item.comparator) == "None" for item in node.comparisons)


def _uses(part: cst.BaseExpression, name: str) -> Iterator[cst.Name]:
    """Where an operator or a call is given the name; None as a value of its own is good."""
    compared = {id(node.left) for node in nodes_of(part, cst.Comparison) if _is(node)}
    if isinstance(part, cst.Name):
        return
    for use in names_in(part):
        if use.value == name and id(use) not in compared:
            yield use


def chains(body: cst.CSTNode) -> list[cst.Comparison]:
    """``0 <= i < n``, which the parser takes for ``(0 <= i) < n``."""
    return [node for node in nodes_of(body, cst.Comparison) if len(node.comparisons) > 1]


def read_as_the_parser(file: FileKernels, kernel: Kernel, callers: tuple[Caller, ...]) -> list[Found]:
    """What the parser does of a kernel and not as Python does; names of the factory are what its callers make them."""
    node = kernel.node
    if file.names.star:
        return []
    around = [part for part in file.index.ancestors(node) if isinstance(part, (cst.FunctionDef, cst.Module))]
    bound, module = set(_BUILTINS), _bound(file.index.module)
    for part in around:
        if isinstance(part, cst.FunctionDef):
            bound |= {param.name.value for param in nodes_of(part.params, cst.Param)}
            bound |= _bound(part.body)
    bound |= module | file.names.visible(node) | {"vid"}  # TL810 tells of vid
    inside = {name: kind for part in around for name, kind in _containers(part.body).items()}
    sizes = {name: value for part in around for name, value in _values(part.body).items()}
    working: set[str] = set()
    params = {param.name.value for param in nodes_of(node.params, cst.Param)}
    words = [caller.words for caller in callers]

    @cache
    def outer(name: str) -> Parsed | None:
        if name not in bound:
            return None
        if name in inside and not any(name in caller.known for caller in callers):
            return inside[name]
        if name in _BUILTINS and name not in module:
            return ODD
        found = [of_python(caller.known[name]) if name in caller.known else UNKNOWN for caller in callers]
        result = found[0] if found else UNKNOWN
        for other in found[1:]:
            result = joined(result, other)
        if result == UNKNOWN and name in sizes and name not in working:
            working.add(name)
            given = FrontEnd(surroundings).value(sizes[name])
            return given if given.on_device else UNKNOWN
        return result

    @cache
    def type_of(text: str) -> str:
        found = {known.get(text, text) for known in words}
        widths, families = {exact(name) for name in found}, {family(name) for name in found}
        if len(widths) == 1 and "" not in widths:
            return widths.pop()
        return f"{families.pop()}*" if len(families) == 1 and "" not in families else ""

    surroundings = Surroundings(
        file.names, outer, module.__contains__, lambda name: lookup(kernel.dialect, name), type_of
    )
    given = dict.fromkeys(params, UNKNOWN)
    for param in kernel.params:
        named = len(param.shape) == 1 and isinstance(param.shape_nodes[0], (cst.Name, cst.Attribute))
        open_end = named or any(isinstance(node, cst.StarredElement) for node in param.shape_nodes)
        given[param.name] = Parsed("buffer", type_of(param.dtype), rank=None if open_end else len(param.shape) or None)
    for name, scalar in kernel.scalars.items():
        if scalar.annotation is not None:
            resolved = (file.names.resolve(scalar.annotation.annotation) or "").rpartition(".")[2]
            given[name] = Parsed("device", exact(resolved))
    reader = FrontEnd(surroundings)
    reader.kernel(node, given)
    for size in (size for param in kernel.params for node in param.shape_nodes for size in names_in(node)):
        if (known := outer(size.value)) is not None and known.own == WIDE:
            reader.tell("wide", size, f"`{size.value}` is an {WIDE}")
    return reader.found


def _containers(body: cst.BaseSuite | Sequence[cst.BaseStatement]) -> dict[str, Parsed]:
    """Names that get a written-out sequence or mapping once, and functions."""
    found: dict[str, Parsed] = {}
    for node in body.body if isinstance(body, cst.BaseSuite) else body:
        for part in node.body if isinstance(node, cst.SimpleStatementLine) else ():
            if isinstance(part, cst.Assign) and isinstance(part.targets[0].target, cst.Name):
                kinds = {cst.Tuple: SOME_ITEMS, cst.List: SOME_ITEMS, cst.Dict: ODD}
                name = part.targets[0].target.value
                found[name] = UNKNOWN if name in found else kinds.get(type(part.value), UNKNOWN)
    return {name: kind for name, kind in found.items() if kind is not UNKNOWN}


def _values(body: cst.BaseSuite | Sequence[cst.BaseStatement]) -> dict[str, cst.BaseExpression]:
    """The values of names that a block binds once: ``M = T.symbolic("M")``, ``rows = M // 16``."""
    statements = body.body if isinstance(body, cst.BaseSuite) else body
    often = Counter(name for statement in statements for name in _bound_by(statement))
    single = [part for node in statements if isinstance(node, cst.SimpleStatementLine) for part in node.body]
    return {
        part.targets[0].target.value: part.value
        for part in single
        if isinstance(part, cst.Assign)
        and len(part.targets) == 1
        and isinstance(part.targets[0].target, cst.Name)
        and often[part.targets[0].target.value] == 1
    }


def _bound(block: cst.BaseSuite | cst.Module) -> frozenset[str]:
    """What the statements of a block bind, imports too; functions and classes inside of it count by their names."""
    return frozenset[str]().union(*(_bound_by(statement) for statement in block.body))


@remembered
def _bound_by(statement: cst.BaseStatement | cst.BaseSmallStatement) -> frozenset[str]:
    """Remembered by node: every kernel of a file asks for its module, and edits keep what they do not touch."""
    found = set(assigned_names(statement))
    for imported in nodes_of(statement, *_IMPORTS):
        aliases = () if isinstance(imported.names, cst.ImportStar) else imported.names
        found |= {alias.evaluated_alias or alias.evaluated_name.split(".")[0] for alias in aliases}
    found |= {part.name.value for part in nodes_of(statement, *_NAMED)}
    return frozenset(found)
