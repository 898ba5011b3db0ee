"""TL732: Python in a kernel that its parser stops at, or evaluates to something else.

Evidence: tilelang/language/parser/parser.py, TVM's ``ExprEvaluator``, and a kernel for each construct.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.checks.subject import Finding, Subject
from tl2npu.kernel.bindings import target_names
from tl2npu.kernel.expressions import code
from tl2npu.kernel.front_end import chains, guarded, optional, truths, unread
from tl2npu.kernel.style import called
from tl2npu.source.tree import names_in, nodes_of, walk

_NEEDS_NUMBERS = frozenset({"min", "max", "int", "float", "round", "abs", "sum", "bool"})


def check(subject: Subject) -> Iterator[Finding]:
    """Findings in the body of the kernel and of the macros that it calls."""
    kernel = subject.kernel.node
    late = _late_names(subject)
    for function in (kernel, *(node for node in called(kernel, subject.file.names) if _is_macro(subject, node))):
        nested = [node for node in nodes_of(function.body, cst.FunctionDef) if node.decorators]
        skipped = {id(part) for node in nested for part in walk(node)}
        maybe = optional((*subject.file.index.ancestors(function), function))
        for node, message in _findings(function, late if function is kernel else frozenset(), maybe):
            if id(node) not in skipped:
                yield Finding("TL732", node, message)


def _is_macro(subject: Subject, node: cst.FunctionDef) -> bool:
    names = subject.file.names
    return any(
        names.resolve(item.decorator.func if isinstance(item.decorator, cst.Call) else item.decorator)
        == "tilelang.language.macro"
        for item in node.decorators
    )


def _findings(
    function: cst.FunctionDef, late: frozenset[str], maybe: frozenset[str]
) -> Iterator[tuple[cst.CSTNode, str]]:
    yield from unread(function.body)
    for test in truths(function.body, maybe):
        yield test, f"`{test.value}` may be None, which is no condition for the parser: write `bool({test.value})`"
    for found in guarded(function.body, maybe):
        text = f"`{found.name}` may be None, and the parser evaluates all parts of `{code(found.whole)}`"
        yield found.whole, text
    for chain in chains(function.body):
        first = code(chain.with_changes(comparisons=chain.comparisons[:1], lpar=(), rpar=()))
        rest = "".join(f"{code(part.operator)}{code(part.comparator)}" for part in chain.comparisons[1:])
        yield chain, f"the parser takes `{code(chain)}` for `({first}){rest}`: write two comparisons with `and`"
    for choice in nodes_of(function.body, cst.IfExp):
        if any(name.value in late for name in names_in(choice.test)):
            yield choice, f"`{code(choice.test)}` is known on the device only: write `T.if_then_else`"
    for call in nodes_of(function.body, cst.Call):
        if isinstance(call.func, cst.Name) and call.func.value in _NEEDS_NUMBERS:
            given = [arg.value for arg in call.args]
            if any(name.value in late for value in given for name in names_in(value)):
                yield call, f"`{code(call)}` is a function of Python, given a value that only the device knows"


def _late_names(subject: Subject) -> frozenset[str]:
    """What stands for a value of the device: block numbers, variables of loops."""
    launch, node = subject.kernel.launch, subject.kernel.node
    found = set(launch.names if launch is not None else ()) - {"_"}
    for loop in nodes_of(node.body, cst.For):
        found |= target_names(loop.target)
    return frozenset(found)
