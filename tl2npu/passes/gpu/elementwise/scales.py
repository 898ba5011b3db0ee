"""Which scale constants lose their factor log2(e): those that are used in exponents of base two only.

``scale = (1.0 / dim) ** 0.5 * 1.44269504`` with ``exp2(x * scale)`` becomes ``scale = (1.0 / dim) ** 0.5`` with
``exp(x * scale)``. A constant that is used for anything else keeps its value.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.numbers import value_of
from tl2npu.passes.gpu.elementwise.algebra import FOLDED, LN_2, Algebra, without_factor
from tl2npu.passes.gpu.elementwise.body import Item, Put
from tl2npu.passes.gpu.elementwise.steps import Step, Under
from tl2npu.passes.gpu.elementwise.tree import Expr, parsed
from tl2npu.passes.gpu.launch.grid import is_outside
from tl2npu.passes.job import Job
from tl2npu.passes.names.constants import define
from tl2npu.passes.writing.statements import Names
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in, nodes_of

_BINDS: tuple[type[cst.CSTNode], ...] = (
    cst.Assign,
    cst.Param,
    cst.AugAssign,
    cst.AnnAssign,
    cst.For,
    cst.With,
    cst.NamedExpr,
)
_LOG2_E = 1.0 / LN_2
_SAYS_LOG2 = re.compile(r"log_?2", re.IGNORECASE)


def foldable(job: Job, items: Iterable[Item]) -> dict[str, cst.Assign]:
    """The names whose definition can lose its factor, with the assignment."""
    defined = dict(_definitions(job))
    if not defined:
        return {}
    used: Counter[str] = Counter()
    spoilt: set[str] = set()
    for exponent in _exponents(items):
        used.update(_names(exponent))
        result = Algebra(frozenset(defined)).times(exponent, LN_2)
        spoilt |= _unscaled(exponent, result)
    around = job.located.factory.node if job.located.factory is not None else job.located.node
    total = Counter(name.value for name in names_in(around))
    return {
        name: node
        for name, node in defined.items()
        if used[name] and name not in spoilt and total[name] == used[name] + 1
    }


def constants(job: Job) -> dict[str, float]:
    """Names that stand for one plain number wherever they are bound: ``log2e = 1.44269504``."""
    found: dict[str, list[float | None]] = {}
    for node in nodes_of(job.module, *_BINDS):
        if isinstance(node, cst.Assign) and len(node.targets) == 1 and isinstance(node.targets[0].target, cst.Name):
            found.setdefault(node.targets[0].target.value, []).append(value_of(node.value))
        elif isinstance(node, cst.Param):
            found.setdefault(node.name.value, []).append(None)
        else:
            for name in _bound(node):
                found.setdefault(name, []).append(None)
    return {name: values[0] for name, values in found.items() if len({*values}) == 1 and values[0] is not None}


def _bound(node: cst.CSTNode) -> Iterator[str]:
    """Names that a statement binds to something else than one expression."""
    targets: list[cst.CSTNode] = []
    if isinstance(node, cst.Assign):
        targets += [target.target for target in node.targets]
    elif isinstance(node, cst.With):
        targets += [item.asname.name for item in node.items if item.asname is not None]
    else:
        targets.append(node.target)  # type: ignore[attr-defined]
    return (name.value for target in targets for name in names_in(target))


def missed(folded: Iterable[str], lowered: Iterable[Sequence[Step]], prelude: Sequence[str]) -> set[str]:
    """The names that statements use with their old value, after all: their definition has to stay."""
    every = [*prelude, *(text for steps in lowered for text in texts(steps))]
    return {name for name in folded if any(re.search(rf"\b{re.escape(name)}\b", text) for text in every)}


def named(steps: Iterable[Step]) -> list[Step]:
    """The steps with the names as the file has them."""
    found: list[Step] = []
    for step in steps:
        if isinstance(step, Under):
            condition = step.condition.replace(FOLDED, "")
            found.append(Under(condition, tuple(named(step.then)), tuple(named(step.orelse)), step.stmt))
        else:
            found.append(replace(step, text=step.text.replace(FOLDED, "")))
    return found


def texts(steps: Iterable[Step]) -> Iterator[str]:
    """The statements of steps, and the conditions that some stand under."""
    for step in steps:
        if isinstance(step, Under):
            yield step.condition
            yield from texts((*step.then, *step.orelse))
        else:
            yield step.text


def fold(job: Job, edits: Edits, chosen: dict[str, cst.Assign]) -> None:
    """Take the factor out of the definitions."""
    for node in chosen.values():
        text = without_factor(code(node.value), _LOG2_E)
        assert text is not None
        new = node.with_changes(value=cst.parse_expression(text))
        line = job.file.index.parent(node)
        comment = line.trailing_whitespace.comment if isinstance(line, cst.SimpleStatementLine) else None
        if isinstance(line, cst.SimpleStatementLine) and comment is not None and _SAYS_LOG2.search(comment.value):
            edits.replace(line, line.with_changes(body=[new], trailing_whitespace=cst.TrailingWhitespace()))
        else:
            edits.replace(node, new)


def name_products(job: Job) -> None:
    """Give ``scale * 0.693...``, which exponents of base two have left, a name beside the kernel."""
    found: dict[str, list[cst.BinaryOperation]] = {}
    for node in nodes_of(job.located.node.body, cst.BinaryOperation):
        scaled = isinstance(node.operator, cst.Multiply) and code(node.right) == str(LN_2)
        if scaled and isinstance(node.left, cst.Name) and node not in job.original and is_outside(job, node):
            found.setdefault(node.left.value, []).append(node)
    if not found or job.located.factory is None:
        return
    edits, names, lines = Edits(job.file.index), Names(job), []
    known = {code(node.value): node.targets[0].target for node in nodes_of(job.located.factory.node.body, cst.Assign)}
    for name, nodes in found.items():
        text = f"{name} * {LN_2}"
        same = known.get(text)
        new = same.value if isinstance(same, cst.Name) else names.fresh(f"{name}_ln2", f"{name}_times_ln2")
        lines += [] if isinstance(same, cst.Name) else [f"{new} = {text}  # exp(x * ln2) for exp2(x)"]
        for node in nodes:
            edits.replace(node, cst.Name(new))
    job.apply(edits)
    define(job, lines)


def _definitions(job: Job) -> Iterator[tuple[str, cst.Assign]]:
    around = job.located.factory.node if job.located.factory is not None else job.located.node
    found: dict[str, list[cst.Assign]] = {}
    for node in nodes_of(around, cst.Assign):
        if len(node.targets) == 1 and isinstance(node.targets[0].target, cst.Name):
            found.setdefault(node.targets[0].target.value, []).append(node)
    for name, nodes in found.items():
        product = len(nodes) == 1 and isinstance(nodes[0].value, cst.BinaryOperation)
        if product and without_factor(code(nodes[0].value), _LOG2_E) is not None:
            yield name, nodes[0]


def _exponents(items: Iterable[Item]) -> Iterator[Expr]:
    """The arguments of exp2, the outermost ones."""
    for item in items:
        if isinstance(item, Put):
            yield from _inside(item.value)
        else:
            yield from _exponents((*item.then, *item.orelse))


def _inside(expr: Expr) -> Iterator[Expr]:
    if expr.kind == "call" and expr.name == "exp2":
        yield expr.args[0]
        return
    for arg in expr.args:
        yield from _inside(arg)


def _names(expr: Expr) -> Counter[str]:
    found: Counter[str] = Counter()
    for part in expr.walk():
        if part.kind == "number":
            found.update(name.value for name in names_in(parsed(part.text)))
    return found


def _unscaled(before: Expr, after: Expr) -> set[str]:
    """Names that do not stand as factors of their own, or that the factor missed."""
    if any(part.kind == "call" for part in before.walk()):
        return set(_names(before))
    bad: set[str] = set()
    for part in before.walk():
        if part.kind == "number" and not part.text.isidentifier():
            bad |= set(_names(part))
    # the factor went into the name itself, everywhere: nothing of ln 2 is left, and there is one name for each term
    text = " ".join(part.text for part in after.walk() if part.kind == "number")
    return bad | (set(_names(before)) if "0.6931" in text else set())
