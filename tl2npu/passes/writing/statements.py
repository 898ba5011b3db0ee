"""New statements from text, spelled as the file spells TileLang."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, count

import libcst as cst

from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Kernel, Launch
from tl2npu.passes.job import Job
from tl2npu.passes.names.imports import spelling
from tl2npu.source.tree import mentioned, names_in, nodes_of, remembered, replaced

_COMMENT = re.compile(r"#[^\n]*")

_OPERATOR = re.compile(r"(?<![\w.])T\.([A-Za-z_][\w.]*)")
NUMBER = re.compile(r"_\d+$")
"""What :class:`Names` puts behind a name that is taken."""


def spelled(job: Job, text: str, at: cst.CSTNode) -> str:
    """The text with every ``T.name`` written as the file can name it at a node (``tl.name``, ``name``)."""
    return _OPERATOR.sub(lambda found: spelling(job, found.group(1), at), text)


def parse(job: Job, text: str, at: cst.CSTNode) -> list[cst.SimpleStatementLine | cst.BaseCompoundStatement]:
    """The statements of a text that uses ``T.``, for the place of the node ``at`` of the tree as it stands now."""
    module = cst.parse_module(spelled(job, text, at), _config(job.module))
    first, *rest = module.body or (None,)
    if first is None:
        return []
    # The comments that a text begins with belong to the module for the parser, not to the statement below them.
    above = [line for line in module.header if line.comment is not None]
    return [first.with_changes(leading_lines=[*above, *first.leading_lines]) if above else first, *rest]


def expression(job: Job, text: str, at: cst.CSTNode) -> cst.BaseExpression:
    """The expression of a text that uses ``T.``."""
    return cst.parse_expression(spelled(job, text, at), _config(job.module))


def flat(node: cst.CSTNode) -> str:
    """The text of an expression on one line, without comments."""
    return " ".join(_COMMENT.sub("", code(node)).split())


def with_threads(launch: Launch, threads: cst.BaseExpression, why: str) -> cst.CSTNode:
    """The statement of a launch with another number of threads, below a comment that says why."""
    assert launch.threads is not None
    made, line = replaced(launch.node, {id(launch.threads.node): threads}), cst.EmptyLine(comment=cst.Comment(why))
    return made.with_changes(leading_lines=[*launch.node.leading_lines, line])


@remembered
def _config(module: cst.Module) -> cst.PartialParserConfig:
    return module.config_for_parsing


def shape_text(kernel: Kernel, extents: Sequence[str]) -> str:
    """A shape, in brackets of the kind that the kernel's own allocations have."""
    shapes = [b.node.args[0].value for b in kernel.buffers.values() if isinstance(b.node, cst.Call) and b.node.args]
    tuples = sum(isinstance(shape, cst.Tuple) for shape in shapes)
    text = ", ".join(extents)
    if tuples > sum(isinstance(shape, cst.List) for shape in shapes):
        return f"({text},)" if len(extents) == 1 else f"({text})"
    return f"[{text}]"


def factor(text: str) -> str:
    """An expression as a factor of a product, in parentheses where it needs them."""
    if text.isidentifier() or text.isdecimal():
        return text
    node = cst.parse_expression(text)
    return f"({text})" if isinstance(node, (cst.BinaryOperation, cst.IfExp)) and not node.lpar else text


class Names:
    """Names that are free in a kernel; each one that is handed out is taken from then on.

    Taken are the names of the factory, and of the module around it; what other functions call their own things is not.
    """

    def __init__(self, job: Job) -> None:
        self._job, self._module = job, job.module
        self._around = job.located.factory.node if job.located.factory else job.located.node

    @cached_property
    def _taken(self) -> set[str]:
        found = mentioned(self._around)
        for statement in self._module.body:
            found |= assigned_names(statement)
            if isinstance(statement, cst.SimpleStatementLine):
                found |= {name.value for name in nodes_of(statement, cst.Name)}
        return found

    def fresh(self, *wishes: str) -> str:
        """The first wish that is free, else the last one with a number."""
        found = next(self._candidates(wishes))
        self._taken.add(found)
        return found

    def lower(self, name: str, stem: str) -> str:
        """The stem if it is free, else with the lowest number that is; ``name`` where no lower one is."""
        found = next(wish for wish in self._candidates((stem,)) if wish != name)
        if len(found) > len(name) or (len(found) == len(name) and found > name):
            return name
        self._taken.add(found)
        self._taken.discard(name)
        return found

    def variables(self, *wishes: Sequence[str], inside: Iterable[cst.CSTNode]) -> list[str]:
        """Names for the variables of a loop that stands at the nodes ``inside``, the first one possible of each kind.

        The variables of other loops may be used again: what means nothing else, and is no loop's around the new one.
        """
        index = self._job.file.index
        around = {name for node in inside for above in index.ancestors(node) for name in _variables(above)}
        found: list[str] = []
        for kinds in wishes:
            every = chain(kinds, (f"{kinds[-1]}_{number}" for number in count(2)))
            free = (name for name in every if name in self._of_loops - around or name not in self._taken)
            found.append(next(name for name in free if name not in found))
        self._taken |= {*found}
        self._of_loops |= {*found}
        return found

    @cached_property
    def _of_loops(self) -> set[str]:
        """Names that are variables of loops wherever the factory has them."""
        loops = nodes_of(self._around, cst.For)
        own = {id(name): name.value for loop in loops for name in names_in(loop) if name.value in _variables(loop)}
        return set(own.values()) - {name.value for name in names_in(self._around) if id(name) not in own}

    def _candidates(self, wishes: Iterable[str]) -> Iterator[str]:
        last = ""
        for last in wishes:
            if last not in self._taken:
                yield last
        number = 2
        while True:
            if f"{last}_{number}" not in self._taken:
                yield f"{last}_{number}"
            number += 1


def _variables(loop: cst.CSTNode) -> set[str]:
    return mentioned(loop.target) if isinstance(loop, cst.For) else set()


def listed_like(items: Sequence[object], like: cst.BaseExpression) -> cst.BaseExpression:
    """Numbers or texts as a list, or as a tuple where ``like`` is one; one alone without brackets where ``like`` is."""
    inner = ", ".join(map(str, items))
    if isinstance(like, cst.Tuple):
        return cst.parse_expression(f"({inner},)" if len(items) == 1 else f"({inner})")
    alone = len(items) == 1 and isinstance(like, (cst.Integer, cst.UnaryOperation))
    return cst.parse_expression(inner if alone else f"[{inner}]")
