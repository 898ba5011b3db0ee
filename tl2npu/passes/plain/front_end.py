"""TL731: expressions of Python in a form that the parser of a prim_func evaluates to the same.

It evaluates both arms of a conditional expression and all operands of ``and`` and ``or``, so a size that may be None
gets a number there; and ``0 <= i < n`` from left to right, so it becomes two comparisons. A name that is given a number
in the kernel is a variable of the device to it, so the number is written out where Python must know it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel.bindings import assigned_names, target_names
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.callers import callers_of
from tl2npu.kernel.parser.front_end import chains, guarded, optional, read_as_the_parser, truths
from tl2npu.passes.job import Job
from tl2npu.passes.names.constants import define
from tl2npu.passes.writing.statements import Names
from tl2npu.source.edits import Edits
from tl2npu.source.tree import calls_in, mentioned, names_in, nodes_of, walk

_CONNECTIVES = tuple(f"tilelang.language.{name}" for name in ("And", "Or", "Not"))
_LOOSE = (cst.Comparison, cst.BooleanOperation, cst.UnaryOperation, cst.IfExp)
_ARITHMETIC = (cst.BinaryOperation, cst.UnaryOperation, cst.Name, cst.Integer, cst.Float, cst.Attribute, cst.Call)


def make_strict(job: Job) -> None:
    """Rewrite what is evaluated in another order than in Python; what is left, TL732 refuses."""
    _place_types(job)
    _split_chains(job)
    _fill_none(job)
    _name_assertions(job)
    _write_out(job)
    _compare_numbers(job)


def _place_types(job: Job) -> None:
    """``A: T.Tensor(shape, dtype=kind)`` as ``T.Tensor(shape, kind)``, if nothing else in the prim_func names ``kind``.

    The parser does not know such a name, and takes what Python made of the annotation; for a keyword it first says so,
    and dies when it says so a second time (``tvm/script/parser/tir/parser.py``, ``visit_function_def``, at 95acbd7f).
    """
    node, factory = job.located.node, job.located.factory
    if factory is None:
        return
    params = {param.name.value for param in nodes_of(factory.node.params, cst.Param)}
    unknown = (params | assigned_names(factory.node.body)) - mentioned(node.body)
    calls = (call for param in node.params.params for call in calls_in(param.annotation or param.name))
    found = [call for call in calls if _is_typed(call) and mentioned(call.args[1].value) & unknown]
    edits = Edits(job.file.index)
    for call in found if len(found) > 1 else ():
        last = call.args[1]
        edits.replace(last, last.with_changes(keyword=None, equal=cst.MaybeSentinel.DEFAULT))
        job.change("TL731", last, f"wrote `{code(last.value)}` by position: the kernel parser does not know the name")
    job.apply(edits)


def _is_typed(call: cst.Call) -> bool:
    """A shape, and ``dtype=`` something."""
    words = [arg.keyword.value if arg.keyword is not None else arg.star for arg in call.args]
    return words == ["", "dtype"]


def _write_out(job: Job) -> None:
    """``pad = N - M`` and ``float(pad)`` as ``float(N - M)``, where a number of Python must stand."""
    index, body = job.file.index, job.located.node
    values = _numbers_of_factory(job)
    edits, done = Edits(index), set[int]()
    for found in read_as_the_parser(job.file, job.kernel, callers_of(job.file, job.located)) if values else ():
        if not found.stops or body not in index.ancestors(found.node):
            continue
        for use in names_in(found.node):
            value = values.get(use.value)
            if value is None or id(use) in done:
                continue
            done.add(id(use))
            operation = isinstance(value, (cst.BinaryOperation, cst.UnaryOperation)) and not value.lpar
            alone = not operation or isinstance(index.parent(use), (cst.Arg, cst.Element))
            edits.replace(use, cst.parse_expression(code(value) if alone else f"({code(value)})"))
            job.change("TL731", use, f"`{use.value}` is a run-time value to the kernel parser: wrote `{code(value)}`")
    job.apply(edits)


def _numbers_of_factory(job: Job) -> dict[str, cst.BaseExpression]:
    """Names that the kernel gives a value once, computed of names that it does not bind."""
    body = job.located.node
    params = [param.name.value for param in nodes_of(body, cst.Param)]
    bound = Counter(params)
    for node in nodes_of(body, cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.For, cst.AsName):
        bound.update(target_names(getattr(node, "name" if isinstance(node, cst.AsName) else "target")))
    found = dict[str, cst.BaseExpression]()
    for target, value in _bindings(body):
        parts = [part for part in walk(value) if isinstance(part, cst.BaseExpression)]
        calls = {job.file.names.resolve(call.func) for call in calls_in(value)}
        if not isinstance(target, cst.Name) or bound[target.value] != 1:
            continue
        if not all(isinstance(part, _ARITHMETIC) for part in parts) or calls - {"tilelang.language.ceildiv"}:
            continue
        if not any(bound[name.value] for name in names_in(value)):
            found[target.value] = value
    return found


def _bindings(body: cst.CSTNode) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """What is assigned to what, ``x, y = a, b`` one by one."""
    for node in nodes_of(body, cst.Assign):
        target, value = node.targets[0].target, node.value
        if isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple):
            pairs = [(left.value, right.value) for left, right in zip(target.elements, value.elements, strict=False)]
            starred = any(isinstance(part, cst.StarredElement) for part in (*target.elements, *value.elements))
            yield from [] if starred else pairs
        else:
            yield target, value


def _compare_numbers(job: Job) -> None:
    """``if i % 2:`` as ``if i % 2 != 0:``, ``T.And(i > 0, True)`` as ``i > 0 and True``, ``z: int = 5`` as ``z = 5``,
    ``x ** 2`` as ``x * x``."""
    edits = Edits(job.file.index)
    told = read_as_the_parser(job.file, job.kernel, callers_of(job.file, job.located))
    whole = {id(part) for found in told if found.what == "connective" for part in walk(found.node)}
    for found in told:
        node = found.node
        if any(id(outer) in whole for outer in job.file.index.ancestors(node)):
            continue
        if found.what == "number" and isinstance(node, cst.BaseExpression):
            text = f"({code(node)})" if isinstance(node, _LOOSE) and not node.lpar else code(node)
            edits.replace(node, cst.parse_expression(f"{text} != 0"))
            job.change("TL731", node, f"`{code(node)}` is a number, but the kernel parser needs a condition")
        elif found.what == "connective" and isinstance(node, cst.Call):
            new = _of_python(job, node)
            alone = isinstance(job.file.index.parent(node), (cst.If, cst.While, cst.Assign, cst.Arg))
            edits.replace(node, new if alone else cst.parse_expression(f"({code(new)})"))
            job.change("TL731", node, f"{found.message}: `and`, `or` and `not` do")
        elif found.what == "annotation" and isinstance(node, cst.AnnAssign) and node.value is not None:
            edits.replace(node, cst.Assign([cst.AssignTarget(node.target)], node.value))
            job.change(
                "TL731", node, f"the kernel parser has no variables of type `{code(node.annotation.annotation)}`"
            )
        elif found.what == "stop" and isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Power):
            base, times = node.left, code(node.right)
            if isinstance(base, (cst.Name, cst.Subscript)) and not calls_in(base) and times in ("2", "3"):
                product = " * ".join([code(base)] * int(times))
                alone = isinstance(job.file.index.parent(node), (cst.Assign, cst.Arg, cst.Index))
                edits.replace(node, cst.parse_expression(product if alone else f"({product})"))
                job.change("TL731", node, f"wrote `{product}`: the kernel parser has no `**`")
    job.apply(edits)


def _of_python(job: Job, call: cst.Call) -> cst.BaseExpression:
    """A call of ``T.And``, ``T.Or`` or ``T.Not`` with the operators of Python, calls in its operands too."""
    operator = (job.file.names.resolve(call.func) or "").rpartition(".")[2].lower()
    operands = []
    for arg in call.args:
        value = arg.value
        if isinstance(value, cst.Call) and job.file.names.resolve(value.func) in _CONNECTIVES:
            value = _of_python(job, value)
        weak = isinstance(value, (cst.BooleanOperation, cst.IfExp)) and not value.lpar
        operands.append(f"({code(value)})" if weak else code(value))
    return cst.parse_expression(f"not {operands[0]}" if operator == "not" else f" {operator} ".join(operands))


def _split_chains(job: Job) -> None:
    edits = Edits(job.file.index)
    inner = {id(part) for node in chains(job.located.node.body) for part in chains(node) if part is not node}
    for node in chains(job.located.node.body):
        if id(node) in inner:
            continue
        values = [node.left, *(target.comparator for target in node.comparisons)]
        texts = [
            f"{code(left)}{code(target.operator)}{code(target.comparator)}"
            for left, target in zip(values, node.comparisons, strict=False)
        ]
        alone = isinstance(job.file.index.parent(node), (cst.If, cst.While, cst.Assign, cst.Arg)) or node.lpar
        text = " and ".join(texts)
        new = cst.parse_expression(text if alone and not node.lpar else f"({text})")
        edits.replace(node, new)
        job.change("TL731", node, f"`{code(node)}`: the kernel parser compares the result of the first comparison")
    job.apply(edits)


def _fill_none(job: Job) -> None:
    """``f(w) if w is not None else 0`` reads a name that is w, or 1 where w is None."""
    own = assigned_names(job.located.node.body) | {param.name.value for param in nodes_of(job.located.node, cst.Param)}
    names, fresh, done = Names(job), dict[str, str](), set[int]()
    edits = Edits(job.file.index)
    maybe = optional(job.file.index.ancestors(job.located.node))
    for test in truths(job.located.node.body, maybe - own):
        edits.replace(test, cst.parse_expression(f"bool({test.value})"))
        job.change("TL731", test, f"`{test.value}` may be None, which is not a valid kernel condition")
    for found in guarded(job.located.node.body, maybe):
        if found.name in own:
            continue
        if found.name not in fresh:
            fresh[found.name] = names.fresh(f"{found.name}_or_1")
            job.change("TL731", found.whole, f"`{found.name}` may be None, and the kernel parser evaluates every part")
        for use in found.uses:
            if id(use) not in done:
                done.add(id(use))
                edits.replace(use, use.with_changes(value=fresh[found.name]))
    job.apply(edits)
    define(job, [f"{new} = 1 if {name} is None else {name}" for name, new in fresh.items()])


def _name_assertions(job: Job) -> None:
    """The parser wants a message with every ``assert``."""
    edits = Edits(job.file.index)
    for node in nodes_of(job.located.node.body, cst.Assert):
        if node.msg is None:
            said = cst.SimpleString('"' + code(node.test).replace('"', "'") + '"')
            edits.replace(
                node, node.with_changes(msg=said, comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
            )
            job.change("TL731", node, "the kernel parser needs a message")
    job.apply(edits)
