"""TL119: an ``if`` of Python that only gives values to names becomes one conditional value for each of them.

The NPU's front end forgets the names of an arm behind it, also where Python decides which arm there is. Nothing is
done where a name is a ``T.alloc_var``, which keeps its value, or where the names are used inside of the arms only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from tl2npu.kernel.bindings import assigned_names, body_of
from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import code, unparenthesised
from tl2npu.kernel.model import Branch, Let, walk
from tl2npu.passes.job import Job
from tl2npu.passes.plain.branches.leaks import leaks
from tl2npu.passes.writing.statements import parse
from tl2npu.passes.writing.substitute import Unclear, substituted
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in

_WIDTH = 120
_INDENT = 4

Values = dict[str, cst.BaseExpression]


def choose(job: Job) -> None:
    """Rewrite every such ``if``; the others are left to :func:`tl2npu.passes.plain.branches.leaks.refuse_leaks`."""
    edits = Edits(job.file.index)
    done: set[int] = set()
    for stmt, used in leaks(job):
        if id(stmt) in done:
            continue
        values = _values(job, stmt, stmt.env) if isinstance(stmt.node, cst.If) else None
        values = {name: value for name, value in (values or {}).items() if name in used}
        if stmt.via or not used <= values.keys() or _in_each_other(values):
            continue
        assert isinstance(stmt.node, cst.If)
        done |= {id(inner) for inner in walk([stmt])}
        depth = sum(isinstance(node, cst.IndentedBlock) for node in job.file.index.ancestors(stmt.node))
        room = _WIDTH - _INDENT * depth
        texts = [_text(name, value, room) for name, value in values.items()]
        lines = [line for text in texts for line in parse(job, text, stmt.node)]
        comments = [cst.EmptyLine(comment=comment) for comment in _comments(stmt.node.with_changes(leading_lines=()))]
        first, *rest = lines
        above = [*stmt.node.leading_lines, *comments]
        edits.replace_many(stmt.node, [first.with_changes(leading_lines=above), *rest])
        names = ", ".join(f"`{name}`" for name in values)
        job.change("TL119", stmt.node, f"wrote a conditional value for {names}, assigned in the branches of an `if`")
    job.apply(edits)


def _in_each_other(values: Values) -> bool:
    """Whether a later value, or its condition, means what a name was before an earlier line changes it."""
    order = list(values)
    return any(
        found.value in order[:position] for position, name in enumerate(order) for found in names_in(values[name])
    )


def _values(job: Job, stmt: Branch, env: Env) -> Values | None:
    """What the names have behind an ``if`` whose arms do nothing else; None if they do."""
    assert isinstance(stmt.node, cst.If)
    if not all(isinstance(inner, (Let, Branch)) and not inner.via for inner in walk([stmt])):
        return None
    if any(_changes(job, inner) for inner in walk([stmt]) if isinstance(inner, Branch)):
        return None  # the GPU's front end forgets these names as well
    try:
        return _of_if(stmt.node, env)
    except Unclear:
        return None


def _changes(job: Job, branch: Branch) -> bool:
    """Whether a condition is known on the device only."""
    return bool(branch.cond.loads) or job.late.is_late(branch.cond.sym)


def _of_if(node: cst.If, env: Env) -> Values | None:
    then = _of_arm(body_of(node), env)
    if isinstance(node.orelse, cst.If):
        orelse = _of_if(node.orelse, env)
    else:
        orelse = _of_arm(body_of(node.orelse) if node.orelse is not None else (), env)
    if then is None or orelse is None:
        return None
    found: Values = {}
    for name in [*then, *(name for name in orelse if name not in then)]:
        arms = then.get(name), orelse.get(name)
        if None in arms and env.lookup(name) is None:
            continue  # not known behind it
        yes, no = (arm if arm is not None else cst.Name(name) for arm in arms)
        same = code(yes) == code(no)
        found[name] = yes if same else cst.IfExp(test=_open(node.test), body=_closed(yes), orelse=no)
    return found


def _of_arm(body: Sequence[cst.CSTNode], env: Env) -> Values | None:
    found: Values = {}
    for line in body:
        if isinstance(line, cst.If):
            inner = _of_if(line, env)
            if inner is None or found:
                return None
            found.update(inner)
            continue
        for small in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            if isinstance(small, cst.Pass):
                continue
            if not isinstance(small, cst.Assign) or len(small.targets) != 1:
                return None
            target = small.targets[0].target
            if not isinstance(target, cst.Name) or assigned_names(small) != {target.value}:
                return None
            value = substituted(small.value, found)
            assert isinstance(value, cst.BaseExpression)
            found[target.value] = value
        if not isinstance(line, cst.SimpleStatementLine):
            return None
    return found


def _open(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.with_changes(lpar=(), rpar=()) if node.lpar and "\n" not in code(node) else node


def _closed(node: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(node, (cst.IfExp, cst.Lambda)) and not node.lpar:
        return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return node


def _text(name: str, value: cst.BaseExpression, room: int) -> str:
    line = f"{name} = {unparenthesised(value)}"
    if len(line) <= room or not isinstance(value, cst.IfExp):
        return line
    indent = "\n" + " " * _INDENT
    parts = [code(value.body), f"if {code(value.test)}", f"else {code(value.orelse)}"]
    return f"{name} = ({indent}{indent.join(parts)}\n)"


def _comments(node: cst.CSTNode) -> Iterator[cst.Comment]:
    """The comments below a node, in text order."""
    for part in node.children:
        if isinstance(part, cst.Comment):
            yield part
        else:
            yield from _comments(part)
