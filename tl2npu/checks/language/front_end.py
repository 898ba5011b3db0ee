"""TL732, TL739, TL748, TL786, TL889: Python in a kernel that its parser stops at, or reads as something else.

Evidence: tilelang/language/parser/parser.py, TVM's ``ExprEvaluator``, and a kernel for each construct.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import libcst as cst

from tl2npu.checks.subject import Finding, Subject
from tl2npu.kernel.clamped import wide_indices
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.callers import callers_of
from tl2npu.kernel.factories.concrete import value_of
from tl2npu.kernel.parser.front_end import chains, guarded, optional, read_as_the_parser, truths
from tl2npu.kernel.parser.scopes import What
from tl2npu.kernel.style import called
from tl2npu.kernel.symbolic import var
from tl2npu.source.constants import UNKNOWN
from tl2npu.source.tree import mentioned, nodes_of, walk

_CODES = {"undefined": "TL889", "stale": "TL739", "value": "TL786"}
_WARNINGS = {"unused": "TL739", "half": "TL710"}
"""What compiles as it is, and what fails for the types of some callers only."""
_HELP: Mapping[What, str] = {
    "stop": "write it with the statements and operators of `tilelang.language`, or compute it before the prim_func",
    "choice": "write `T.if_then_else(condition, a, b)`",
    "index": "write one integer index or one slice without a step for each axis",
    "sequence": "pass the values as a tensor, or choose one with `T.if_then_else`",
    "size": "use an integer that the factory knows for a tile, and any integer for a loop",
    "types": 'convert one of them, as in `T.cast(x, "float32")`',
    "number": "compare it with a number",
    "unused": "write `=` to give the name a value",
    "half": 'compute in float32, as in `T.cast(x, "float32")`, or with tile operators',
    "connective": "write `and`, `or` and `not`, which Python evaluates before the compiler",
    "annotation": "give the name a value, with a TileLang type or without an annotation",
}
"""What to do about each cause of TL732, and of scalars of TL710."""


def check(subject: Subject) -> Iterator[Finding]:
    """Findings in the body of the kernel and of the macros that it calls."""
    kernel = subject.kernel.node
    for function in (kernel, *(node for node in called(kernel, subject.file.names) if _is_macro(subject, node))):
        nested = [node for node in nodes_of(function.body, cst.FunctionDef) if node.decorators]
        skipped = {id(part) for node in nested for part in walk(node)}
        maybe = optional((*subject.file.index.ancestors(function), function))
        for node, message, help_ in _lazy(function, maybe):
            if id(node) not in skipped:
                yield Finding("TL732", node, message, help=help_)
    told = read_as_the_parser(subject.file, subject.kernel, subject.callers)
    for stmt, found in wide_indices(subject.kernel, told):
        text = f"{found.message}: the compiler takes int32 only where it cuts a copy at the end of its tensor"
        yield Finding("TL748", stmt.node, text)
    for found in told:
        if found.what == "wide":
            continue
        if found.what == "value" and _is_never_run(subject, found.node):
            continue
        help_ = _HELP.get(found.what, "")
        if found.what in _WARNINGS:
            yield Finding(_WARNINGS[found.what], found.node, found.message, "warning", help=help_)
            continue
        unharmed = found.meant or (found.lost is not None and _is_never_run(subject, found.lost))
        said = _CODES.get(found.what, "TL732")
        yield Finding(said, found.node, found.message, as_it_stands="warning" if unharmed else None, help=help_)
    yield from _sizes(subject)


def _is_never_run(subject: Subject, statement: cst.CSTNode) -> bool:
    """Whether an ``if`` around a statement is known to be false, or its ``else`` to be skipped, in every call."""
    callers = callers_of(subject.file, subject.located, given=subject.options.calls)
    inner = statement
    for node in subject.file.index.ancestors(statement):
        if isinstance(node, cst.If) and inner is not node.test:
            skipped = inner is node.body
            tests = [value_of(node.test, caller.known, caller.names) for caller in callers]
            if all(test is not UNKNOWN and bool(test) != skipped for test in tests):
                return True
        inner = node
    return False


def _sizes(subject: Subject) -> Iterator[Finding]:
    """A size of the launch that no extent is: "Find undefined Variable n" where the kernel uses it."""
    kernel, launch = subject.kernel, subject.kernel.launch
    names = subject.late.names - set(kernel.scalars)
    if launch is None or not names:
        return
    alone = {name for param in kernel.params for size in param.shape for name in names if size == var(name)}
    used = mentioned(launch.node) | {name for size in launch.grid for name in size.variables()}
    for param in kernel.params:
        for name in sorted({n for size in param.shape for n in size.variables()} & (names - alone) & used):
            text = f"`{name}` is a part of an extent only: the compiler takes sizes from whole extents of tensors"
            yield Finding("TL889", param.node, text)


def _is_macro(subject: Subject, node: cst.FunctionDef) -> bool:
    names = subject.file.names
    return any(
        names.resolve(item.decorator.func if isinstance(item.decorator, cst.Call) else item.decorator)
        == "tilelang.language.macro"
        for item in node.decorators
    )


def _lazy(function: cst.FunctionDef, maybe: frozenset[str]) -> Iterator[tuple[cst.CSTNode, str, str]]:
    """What the parser evaluates though Python would not: the place, a message and a help."""
    for test in truths(function.body, maybe):
        text = f"`{test.value}` may be None, which is not a condition"
        yield test, text, f"write `bool({test.value})`"
    for found in guarded(function.body, maybe):
        text = f"`{found.name}` may be None, but the parser evaluates all of `{code(found.whole)}`"
        yield found.whole, text, f"give `{found.name}` a number in the factory, before the prim_func, where it is None"
    for chain in chains(function.body):
        first = code(chain.with_changes(comparisons=chain.comparisons[:1], lpar=(), rpar=()))
        rest = "".join(f"{code(part.operator)}{code(part.comparator)}" for part in chain.comparisons[1:])
        text = f"the kernel parser reads `{code(chain)}` as `({first}){rest}`"
        yield chain, text, "write two comparisons, joined by `and`"
