"""TL231: the pass_configs that the new form needs.

A kernel without Scope needs AUTO_CV_COMBINE whatever it computes: only that pass puts its statements behind
``ASCEND_IS_AIC`` or ``ASCEND_IS_AIV`` (``src/target/codegen_ascend.cc``, resource_scope). AUTO_CV_SYNC is for kernels
in which the two cores exchange data. A pass that stands in for what was written by hand is switched on with it, and
TL925 says so; MEMORY_PLANNING stays off where no address was written by hand.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

import libcst as cst

from tl2npu.dialects.pass_configs import STRING_OF
from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.compilations import Compilation
from tl2npu.kernel.factories.configs import ALL, COMBINE, CV_SYNC, PLANNING, SYNC, Configs, key_of, read_configs
from tl2npu.kernel.factories.positions import compilations
from tl2npu.passes.host.signature import refuse_shared_arguments
from tl2npu.passes.job import Job
from tl2npu.passes.names.assignments import bound
from tl2npu.passes.uncompiled import compiled_by, may_be_compiled, why_uncompiled
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned, names_in, nodes_of

_LONG_LINE = 96
_OWN = re.compile(r"(developer_)?pass_configs\d*")
"""What dicts of this project are called."""
_ADDRESS = "TL308"
_BY_HAND: Mapping[str, Sequence[tuple[frozenset[str], str]]] = {
    COMBINE: [(frozenset({"TL302", "TL307"}), "`T.Scope` blocks")],
    CV_SYNC: [(frozenset({"TL305"}), "cross-core flags"), (frozenset({"TL306"}), "grid barriers")],
    SYNC: [(frozenset({"TL304"}), "flags"), (frozenset({"TL303", "TL306"}), "barriers")],
    PLANNING: [(frozenset({_ADDRESS}), "addresses")],
}
"""What an author writes instead of a pass, by the codes of the edits that take it away."""
_WITHOUT: Mapping[str, str] = {
    COMBINE: "because nothing else assigns statements to cores",
    CV_SYNC: "because nothing else synchronises the two cores",
    SYNC: "because nothing else synchronises the pipes of a core",
    PLANNING: "because nothing else assigns addresses",
}
_UNPACKED_AS_IT_IS = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Dict)
"""What needs no parentheses behind ``**``."""


def require(job: Job, needed: tuple[str, ...], *, is_new: bool = False) -> None:
    """Make every compilation of the kernel set the needed keys; raises :class:`Blocked` where one cannot be set.

    ``is_new``: the kernel is new to the NPU. If nothing known compiles it, an error says what has to be set where it is
    compiled, which cannot be the case yet.
    """
    if not compilations(job.located):
        if not (is_new and may_be_compiled(job)):
            raise Blocked("TL816", job.located.node, why_uncompiled(job, "pass_configs"))
        keys = " and ".join(f"`{key}`" for key in needed)
        way = f"{compiled_by(job)} before you migrate, or set {keys} where it is compiled"
        job.note("TL816", job.located.node, f"nothing in this file compiles the kernel: {way}")
    for place in range(len(compilations(job.located))):
        found = compilations(job.located)[place]
        configs = read_configs(job.file, found, job.elsewhere)
        missing = _missing(job, found, configs, needed)
        if not missing:
            continue
        file, edited = job.file, list(job.edited)
        _write(job, found, configs, missing)
        if _missing(job, compilations(job.located)[place], needed=needed):  # a later statement switches it off again
            job.restore(file, edited)
            _write(job, found, configs, missing, spelled_out=True)
        node = found.kwargs.get("pass_configs", found.node)
        job.change("TL231", node, "pass_configs: " + ", ".join(missing) + " on")
        for key in missing if not configs.all_off else ():
            if configs.values.get(key) is False:
                text = f"`{key}` was False{_where(job, configs)}; wrote True, {_why(job, key)}"
                job.note("TL925", node, text)


def _missing(job: Job, found: Compilation, configs: Configs | None = None, needed: tuple[str, ...] = ()) -> list[str]:
    """The keys that a compilation has to set and does not. Raises :class:`Blocked` where the author's word stands."""
    if configs is None:
        configs = read_configs(job.file, found, job.elsewhere)
    policy = job.options.pass_config_policy
    missing = [key for key in (ALL if policy == "four" else needed) if not configs.is_on(key)]
    node = found.kwargs.get("pass_configs", found.node)
    if missing and configs.all_off:
        missing = [key for key in ALL if key in missing or key in configs.values]
    else:
        addresses = any(code == _ADDRESS for code, _, _ in job.edited)
        wanted = [key for key in needed if key != PLANNING or addresses]
        missing = [key for key in missing if configs.values.get(key) is not False or key in wanted]
    if policy == "keep" and configs.values and missing:
        state = "switched off" if configs.values.get(missing[0]) is False else "missing"
        where = _where(job, configs)
        raise Blocked(
            "TL816", node, f"{missing[0]} is {state}{where}, but `--pass-config-policy keep` forbids adding it"
        )
    unread = [key for key in missing if key in configs.values and configs.values[key] is None]
    if unread:
        raise Blocked("TL816", node, f"cannot read the value of {unread[0]}{_where(job, configs)}")
    return missing


def _why(job: Job, key: str) -> str:
    """Why a pass is needed that the author did without."""
    gone = {code for code, _, _ in job.edited}
    for codes, what in _BY_HAND[key]:
        if gone & codes:
            return f"because the hand-written {what} were removed"
    return _WITHOUT[key]


def _write(job: Job, found: Compilation, configs: Configs, missing: list[str], spelled_out: bool = False) -> None:
    """Set keys in a dict of the file, or with ``spelled_out`` in a new one around what is given."""
    refuse_shared_arguments(job, found)
    edits = Edits(job.file.index)
    node = found.kwargs.get("pass_configs")
    if node is None or (isinstance(node, cst.Name) and node.value == "None"):
        _new_dict(job, edits, found, missing)
        return
    literal = configs.literal
    if literal is None or spelled_out or _is_of_another_file(job, literal) or configs.shared or configs.unknown:
        edits.replace(node, _with_more(job, found, configs, missing))
    else:
        edits.replace(literal, extended(job, literal, missing))
    job.apply(edits)


def _where(job: Job, configs: Configs) -> str:
    """Which other file says so."""
    literal = configs.literal
    if literal is None or not _is_of_another_file(job, literal):
        return ""
    owner = job.file.index.enclosing(literal, cst.Assign) if literal in job.file.index else None
    name = code(owner.targets[0].target) if owner is not None else ""
    return f" in `{name}`, which the file imports" if name else ""


def _is_of_another_file(job: Job, literal: cst.Dict) -> bool:
    """True for a dict that the file imports: text of another file is not changed."""
    return literal in job.original and job.original.foreign(literal) is not None


def _with_more(job: Job, found: Compilation, configs: Configs, missing: list[str]) -> cst.BaseExpression:
    """``{**old, KEY: True}``, with a line for each item where one line would be long.

    A choice, and a name that this file gives a value, may be None, which ``**`` does not take.
    """
    old = found.kwargs["pass_configs"]
    literal = configs.literal
    like = literal if literal is not None and _is_of_another_file(job, literal) else None
    whole = code(old) if isinstance(old, _UNPACKED_AS_IT_IS) or old.lpar else f"({code(old)})"
    choice = isinstance(old, (cst.IfExp, cst.BooleanOperation))
    own = isinstance(old, cst.Name) and job.file.names.resolve(old) is None and not _is_always_dict(job, old.value)
    items = [f"**({whole} or {{}})" if configs.unknown and (choice or own) else f"**{whole}"]
    items += [f"{spelled(job, key, like)}: True" for key in missing]
    text = f"{{{', '.join(items)}}}"
    if len(code(found.call or found.node)) - len(code(old)) + len(text) > _LONG_LINE:
        indent = _indent(found.call, old)
        text = "".join(["{\n", *(f"{indent}    {item},\n" for item in items), indent, "}"])
    return cst.parse_expression(text)


def _is_always_dict(job: Job, name: str) -> bool:
    """True if all that the file binds a name to, wherever it does, is written as a dict; a parameter is not."""
    values = [
        value for node in nodes_of(job.module, cst.Assign, cst.AnnAssign) for own, value in bound(node) if own == name
    ]
    params = (param.name.value for param in nodes_of(job.module, cst.Param))
    return bool(values) and name not in params and all(isinstance(value, cst.Dict) for value in values)


def _indent(call: cst.Call | None, value: cst.BaseExpression) -> str:
    """How far the line of an argument is indented below the statement."""
    between: object = call.whitespace_before_args if call is not None else None
    found = ""
    for arg in call.args if call is not None else ():
        if isinstance(between, cst.ParenthesizedWhitespace):
            found = between.last_line.value
        if arg.value is value:
            return found
        between = arg.comma.whitespace_after if isinstance(arg.comma, cst.Comma) else None
    return ""


def spelled(job: Job, key: str, like: cst.Dict | None) -> str:
    """A key as this file writes keys: the enum, or its string, which a file needs that can do without TileLang."""
    for element in like.elements if like else ():
        name = key_of(job.file, element.key) if isinstance(element, cst.DictElement) else None
        if isinstance(element, cst.DictElement) and name is not None:
            if isinstance(element.key, cst.SimpleString) and element.key.evaluated_value == STRING_OF.get(name):
                quote = element.key.quote
                return f"{quote}{STRING_OF[key]}{quote}"
            if isinstance(element.key, cst.Attribute) and element.key.attr.value != "value":
                return f"{code(element.key.value)}.{key}"
    prefix = job.file.names.spell("tilelang.PassConfigKey", at=job.module)
    if prefix is None or job.file.names.has_fallback(prefix.split(".")[0]):
        return f'"{STRING_OF[key]}"'
    return f"{prefix}.{key}"


def extended(job: Job, literal: cst.Dict, missing: list[str]) -> cst.Dict:
    """The dict with the keys set to True: flipped where they stand, appended in the dict's own layout."""
    elements = list(literal.elements)
    rest = list(missing)
    for i, element in enumerate(elements):
        if isinstance(element, cst.DictElement):
            key = key_of(job.file, element.key)
            if key in rest:
                elements[i] = element.with_changes(value=cst.Name("True"))
                rest.remove(key)
    if not rest:
        return literal.with_changes(elements=elements)
    if len(elements) > 1 and isinstance(elements[0].comma, cst.Comma):
        between = elements[0].comma
        if isinstance(between.whitespace_after, cst.ParenthesizedWhitespace):
            plain = between.whitespace_after.with_changes(
                first_line=cst.TrailingWhitespace(newline=between.whitespace_after.first_line.newline), empty_lines=()
            )
            between = between.with_changes(whitespace_after=plain)
    else:
        after = literal.lbrace.whitespace_after
        multi = isinstance(after, cst.ParenthesizedWhitespace)
        between = cst.Comma(whitespace_after=after if multi else cst.SimpleWhitespace(" "))
    new = [cst.DictElement(cst.parse_expression(spelled(job, key, literal)), cst.Name("True")) for key in rest]
    last_comma = elements[-1].comma if elements else cst.MaybeSentinel.DEFAULT
    rbrace = literal.rbrace
    if elements:
        joint = between
        if isinstance(last_comma, cst.Comma) and "#" in code(last_comma):
            joint, rest_after = _with_comment(between, last_comma.whitespace_after)
            last_comma = last_comma.with_changes(whitespace_after=rest_after)
        elif "#" in code(rbrace):
            joint, rest_after = _with_comment(between, rbrace.whitespace_before)
            rbrace = rbrace.with_changes(whitespace_before=rest_after)
        elements[-1] = elements[-1].with_changes(comma=joint)
    new = [element.with_changes(comma=between) for element in new[:-1]] + [new[-1].with_changes(comma=last_comma)]
    return literal.with_changes(elements=[*elements, *new], rbrace=rbrace)


def _with_comment(
    comma: cst.Comma, space: cst.BaseParenthesizableWhitespace
) -> tuple[cst.Comma, cst.BaseParenthesizableWhitespace]:
    """The comma with the comment that ends the line, and the space without it: a comment stays with its element."""
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return comma, space
    after = comma.whitespace_after
    if isinstance(after, cst.ParenthesizedWhitespace):
        comma = comma.with_changes(whitespace_after=after.with_changes(first_line=space.first_line))
    else:
        comma = comma.with_changes(whitespace_after=space)
    return comma, space.with_changes(first_line=cst.TrailingWhitespace(newline=space.first_line.newline))


def _new_dict(job: Job, edits: Edits, found: Compilation, missing: list[str]) -> None:
    """A module-level ``pass_configs`` above the function that is compiled, and the argument that passes it.

    The kernels of a file share one: what orders the cores does nothing where only one of them works.
    """
    taken = mentioned(job.module) | set(job.elsewhere)
    name = "pass_configs"
    place = next(number for number, other in enumerate(compilations(job.located)) if other.node is found.node)
    for own in filter(_OWN.fullmatch, dict.fromkeys(n.value for n in names_in(job.module))):
        other = _above(job, found, own)
        if other is None or not other.values.keys() <= set(ALL) or not all(other.values.values()):
            continue
        rest = [key for key in missing if key not in other.values]
        made = own not in mentioned(job.original.module)
        if rest and made and other.literal is not None:
            edits.replace(other.literal, extended(job, other.literal, rest))
            job.apply(edits)
        if not rest or made:
            _pass_argument(job, own, place)
            return
    if name in taken:
        count = 2
        while f"developer_pass_configs{count if count > 2 else ''}" in taken:
            count += 1
        name = f"developer_pass_configs{count if count > 2 else ''}"
    top = _top_statement(job, found)
    indent = job.module.default_indent
    keys = "".join(f"{indent}{spelled(job, key, None)}: True,\n" for key in missing)
    line = cst.ensure_type(cst.parse_statement(f"{name} = {{\n{keys}}}\n"), cst.SimpleStatementLine)
    line = line.with_changes(leading_lines=[cst.EmptyLine(indent=False)] * 2 if _blank_lines(top) else [])
    edits.replace_many(top, [line, _spaced(top)])
    job.apply(edits)
    _pass_argument(job, name, place)


def _above(job: Job, found: Compilation, name: str) -> Configs | None:
    """What a module-level dict of that name above the compilation says; None if there is none."""
    top = _top_statement(job, found)
    above = itertools.takewhile(lambda statement: statement is not top, job.module.body)
    if not any(name in assigned_names(statement) for statement in above):
        return None
    other = read_configs(job.file, Compilation(found.node, None, {"pass_configs": cst.Name(name)}))
    return None if other.unknown else other


def _blank_lines(top: cst.BaseStatement) -> list[cst.EmptyLine]:
    lines = list(getattr(top, "leading_lines", ()))
    count = next((i for i, line in enumerate(lines) if line.comment is not None), len(lines))
    return lines[:count]


def _spaced(top: cst.BaseStatement) -> cst.BaseStatement:
    lines = list(top.leading_lines)  # type: ignore[attr-defined]
    rest = lines[len(_blank_lines(top)) :]
    return top.with_changes(leading_lines=[cst.EmptyLine(indent=False), cst.EmptyLine(indent=False), *rest])


def _top_statement(job: Job, found: Compilation) -> cst.BaseStatement:
    node = job.file.index.top(found.node)
    if job.file.index.parent(node) is None:
        raise Blocked("TL902", found.node, "the kernel is compiled outside of the module")
    assert isinstance(node, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    return node


def _pass_argument(job: Job, name: str, place: int) -> None:
    """Give ``pass_configs=name`` to a compilation, named by its place among those of the kernel: the tree is new."""
    found = compilations(job.located)[place]
    node = found.kwargs.get("pass_configs")
    edits = Edits(job.file.index)
    if node is not None:
        edits.replace(node, cst.Name(name))
    elif found.call is None:
        assert isinstance(found.node, cst.BaseExpression)
        edits.replace(found.node, cst.parse_expression(f"{code(found.node)}(pass_configs={name})"))
    else:
        edits.replace(found.call, with_argument(found.call, f"pass_configs={name}"))
    job.apply(edits)


def with_argument(call: cst.Call, text: str) -> cst.Call:
    """The call with one more keyword argument, in the layout of the arguments that it has."""
    parsed = cst.ensure_type(cst.parse_expression(f"f({text})"), cst.Call)
    new = parsed.args[0]
    if not call.args:
        return call.with_changes(args=(new,))
    last = call.args[-1]
    if len(call.args) > 1 and isinstance(call.args[0].comma, cst.Comma):
        between = call.args[0].comma
    else:
        before = call.whitespace_before_args
        multi = isinstance(before, cst.ParenthesizedWhitespace)
        between = cst.Comma(whitespace_after=before if multi else cst.SimpleWhitespace(" "))
    added = new.with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    kept = last.with_changes(comma=between, whitespace_after_arg=cst.SimpleWhitespace(""))
    return call.with_changes(args=(*call.args[:-1], kept, added))
