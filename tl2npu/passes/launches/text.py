"""The functions that take the place of a factory whose prim_func launched several times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.bindings import assigned_names
from tl2npu.passes.eager.kernel import Line
from tl2npu.passes.eager.text import without_blank_above
from tl2npu.passes.launches.choices import blank_lines, is_text, with_params
from tl2npu.source.index import Index
from tl2npu.source.names import Names
from tl2npu.source.tree import mentioned, names_in, nodes_of


@dataclass(eq=False)
class Part:
    """One launch: ``tensors`` are the parameters of its prim_func, in order, ``fresh`` the last ones, which it makes.

    ``lines`` is code of the old prim_func that it needs.
    """

    launch: cst.With
    suffix: str
    lines: list[cst.SimpleStatementLine]
    tensors: list[str]
    fresh: list[str]


@dataclass(frozen=True)
class Methods:
    """Methods of a compiled kernel for the function that runs all parts.

    ``tilelang``: how the file calls it, if a ``get_profiler`` is wanted; ``source``: whether ``get_kernel_source`` is.
    """

    tilelang: str | None = None
    source: bool = False


def rebuilt(
    index: Index,
    names: Names,
    factory: cst.FunctionDef,
    node: cst.FunctionDef,
    parts: Sequence[Part],
    temporaries: dict[str, cst.BaseExpression],
    outputs: Sequence[str],
    methods: Methods,
) -> list[cst.FunctionDef]:
    """A factory per launch, then the function of the old name.

    ``methods``: what callers use of that which this function gives.
    """
    taken = {name.value for name in nodes_of(index.module, cst.Name)}
    annotations = dict(temporaries)
    for param in node.params.params:
        if param.annotation is not None:
            annotations[param.name.value] = param.annotation.annotation
    made: list[cst.FunctionDef] = []
    for number, part in enumerate(parts):
        name = f"{factory.name.value}_{part.suffix}"
        if part.suffix.replace("_", "").startswith(factory.name.value.replace("_", "")):
            name = part.suffix
        while name in taken:
            name += "_"
        made.append(_factory(index, factory, node, part, name, annotations, first=number == 0))
    above = blank_lines(index, factory)
    made = [made[0], *(item.with_changes(leading_lines=above) for item in made[1:])]
    return [*made, _runner(index, factory, node, parts, made, outputs, methods).with_changes(leading_lines=above)]


def _factory(
    index: Index,
    factory: cst.FunctionDef,
    node: cst.FunctionDef,
    part: Part,
    name: str,
    annotations: dict[str, cst.BaseExpression],
    *,
    first: bool,
) -> cst.FunctionDef:
    def own(item: cst.CSTNode) -> cst.CSTNode:
        return item if first else item.deep_clone()

    indent = index.module.default_indent
    made = cst.ensure_type(
        cst.parse_statement("def f(\n" + "".join(f"{indent}{t}: 0,\n" for t in part.tensors) + "):\n    pass\n"),
        cst.FunctionDef,
    )
    params = [
        param.with_changes(annotation=cst.Annotation(annotations[param.name.value].deep_clone()))
        for param in made.params.params
    ]
    comments = [line for line in part.launch.leading_lines if line.comment is not None]
    body: list[cst.BaseStatement] = [
        *(cst.ensure_type(own(line), cst.SimpleStatementLine).with_changes(leading_lines=()) for line in part.lines),
        part.launch.with_changes(leading_lines=comments),
    ]
    inner = node.with_changes(
        name=cst.Name(node.name.value),
        params=node.params.with_changes(params=params),
        whitespace_before_params=made.whitespace_before_params,
        body=node.body.with_changes(body=body, footer=()),
        decorators=[cst.ensure_type(own(item), cst.Decorator) for item in node.decorators],
    )
    used = {n.value for item in (inner, factory.decorators[-1]) for n in names_in(item)}
    lines: list[Line] = []
    place = factory.body.body.index(node)
    for line in reversed(factory.body.body[:place]):
        assert isinstance(line, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
        bound = assigned_names(line)
        if is_text(line) or (bound and not bound & used) or (not bound and not first):
            continue
        used |= mentioned(line)
        kept = own(line)
        assert isinstance(kept, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
        lines.insert(0, kept)
    if lines:
        lines[0] = without_blank_above(lines[0])
    if not lines:
        inner = inner.with_changes(leading_lines=())
    elif not inner.leading_lines:
        inner = inner.with_changes(leading_lines=[cst.EmptyLine(indent=False)])
    after = [own(line) for line in factory.body.body[place + 1 :]]
    body_of_factory = factory.body.with_changes(body=[*lines, inner, *after])
    return factory.with_changes(
        name=cst.Name(name),
        params=with_params(factory.params, used),
        decorators=[_jit(factory.decorators[-1], part)],
        body=body_of_factory,
    )


def _jit(decorator: cst.Decorator, part: Part) -> cst.Decorator:
    """The decorator with the outputs of a part."""
    count = len(part.tensors)
    places = ", ".join(str(count - len(part.fresh) + n) for n in range(len(part.fresh)))
    old = decorator.decorator
    func = old.func if isinstance(old, cst.Call) else old
    args = [a.deep_clone() for a in old.args] if isinstance(old, cst.Call) else []
    rest = [a for a in args if a.keyword is None or a.keyword.value != "out_idx"]
    new = cst.ensure_type(cst.parse_expression(f"f(out_idx=[{places}])"), cst.Call).args if part.fresh else ()
    given = list(args)
    if len(rest) < len(args):
        place = next(n for n, a in enumerate(args) if a.keyword is not None and a.keyword.value == "out_idx")
        given[place : place + 1] = [args[place].with_changes(value=new[0].value)] if new else []
    else:
        given = [*new, *rest]
    if not given:
        return decorator.with_changes(decorator=func.deep_clone())
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    given = [
        a.with_changes(comma=comma) if n < len(given) - 1 and not isinstance(a.comma, cst.Comma) else a
        for n, a in enumerate(given)
    ]
    call = old if isinstance(old, cst.Call) else cst.Call(func)
    return decorator.with_changes(decorator=call.with_changes(func=func.deep_clone(), args=given))


def _runner(
    index: Index,
    factory: cst.FunctionDef,
    node: cst.FunctionDef,
    parts: Sequence[Part],
    made: Sequence[cst.FunctionDef],
    outputs: Sequence[str],
    methods: Methods,
) -> cst.FunctionDef:
    """``def f(...)``: compiles every part, and gives a function that runs them."""
    every = {p.name.value for p in (*factory.params.params, *factory.params.kwonly_params)}
    tensors = [p.name.value for p in node.params.params if p.name.value not in outputs]
    busy = every | {t for part in parts for t in part.tensors} | {item.name.value for item in made}
    handles = [part.suffix if part.suffix not in busy else f"{part.suffix}_kernel" for part in parts]
    indent = index.module.default_indent
    lines = []
    for handle, item in zip(handles, made, strict=True):
        given = [p.name.value for p in item.params.params]
        given += [f"{p.name.value}={p.name.value}" for p in item.params.kwonly_params]
        lines.append(f"{handle} = {item.name.value}({', '.join(given)})")
    name = next(n for n in ("kernel", "run", "launch_all") if n not in {*busy, *handles} or n == "launch_all")
    lines += ["", f"def {name}({', '.join(tensors)}):"]
    for handle, part in zip(handles, parts, strict=True):
        passed = part.tensors[: len(part.tensors) - len(part.fresh)]
        call = f"{handle}({', '.join(passed)})"
        lines.append(f"{indent}{', '.join(part.fresh)} = {call}" if part.fresh else f"{indent}{call}")
    if outputs:
        last = parts[-1]
        if list(outputs) == last.fresh and len(outputs) == 1:
            lines[-1] = f"{indent}return " + lines[-1].split(" = ", 1)[1]
        else:
            lines.append(f"{indent}return {', '.join(outputs)}")
    if methods.tilelang is not None:
        lines += ["", *_profiler(name, _given(tensors, parts, handles), methods.tilelang, indent)]
    if methods.source:
        texts = ", ".join(f"{handle}.get_kernel_source()" for handle in handles)
        lines += ["", "def get_kernel_source():", f'{indent}return "\\n".join([{texts}])']
        lines += ["", f"{name}.get_kernel_source = get_kernel_source"]
    lines += [f"return {name}"] if methods != Methods() else ["", f"return {name}"]
    text = "def f():\n" + "".join(f"{indent}{line}\n" if line else "\n" for line in lines)
    body = cst.ensure_type(cst.parse_statement(text, index.module.config_for_parsing), cst.FunctionDef).body
    docs = [line for line in factory.body.body[:1] if is_text(line)]
    return factory.with_changes(
        decorators=(), body=body.with_changes(body=[*docs, *body.body]), lines_after_decorators=()
    )


def _given(tensors: Sequence[str], parts: Sequence[Part], handles: Sequence[str]) -> str:
    """The descriptions of the tensors that a call takes, from the parts that read them."""
    runs: list[tuple[str, int, int]] = []
    for tensor in tensors:
        handle, part = next((h, p) for h, p in zip(handles, parts, strict=True) if tensor in p.tensors)
        at = part.tensors.index(tensor)
        if runs and runs[-1][0] == handle and runs[-1][2] == at:
            runs[-1] = handle, runs[-1][1], at + 1
        else:
            runs.append((handle, at, at + 1))
    texts = [f"{handle}.params[{start or ''}:{end}]" for handle, start, end in runs]
    return texts[0] if len(texts) == 1 else f"[{', '.join('*' + text for text in texts)}]"


def _profiler(name: str, given: str, root: str, indent: str) -> list[str]:
    """``get_profiler`` of the function that runs the parts: a profiler makes their inputs and calls it."""
    return [
        f"def get_profiler(tensor_supply_type={root}.TensorSupplyType.Auto):",
        f"{indent}profiler = {root}.profiler.Profiler({given}, [], [], tensor_supply_type)",
        f"{indent}return profiler.with_default_adapter({name})",
        "",
        f"{name}.get_profiler = get_profiler",
    ]
