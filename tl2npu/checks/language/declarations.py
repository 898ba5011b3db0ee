"""TL785, TL787, TL788: what a factory declares: element types, positions of outputs, and that it returns its kernel.

The front end makes buffers of ``DataType(dtype)``, which reads TVM's names of types only. ``out_idx`` and
``workspace_idx`` are tensors that the runtime allocates without a value (``tilelang/jit/adapter/cython``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from tl2npu.checks.cross_core.channels import on_chip
from tl2npu.checks.subject import Finding, Subject
from tl2npu.kernel.access import accesses
from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.compilations import Compilation, jit_call
from tl2npu.kernel.factories.positions import compilations, parameter_count
from tl2npu.kernel.factories.tunings import AUTOTUNE
from tl2npu.kernel.model import Alloc, Buffer, Opaque, walk
from tl2npu.source.named_by_call import returns
from tl2npu.source.tree import argument, mentioned

_TYPES = re.compile(
    r"(bool|handle|void|u?int[0-9]*|float[0-9]*|bfloat(16)?)(x[0-9]+)?|(e4m3_|e5m2_)?float[48]_?.*|custom\[.*"
)
_KEYS = ("out_idx", "workspace_idx")


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about the types of buffers, the positions of outputs and the end of the factory."""
    yield from _types(subject)
    yield from _returns(subject)
    keys = _KEYS[:1] if on_chip(subject) else _KEYS  # the compiler's own workspaces: TL811
    for compilation in compilations(subject.located):
        for key in keys:
            yield from _positions(subject, compilation, key)


# element types -------------------------------------------------------------------------------------------------------


def _types(subject: Subject) -> Iterator[Finding]:
    outer = subject.located.factory.env if subject.located.factory else subject.located.env
    found: list[tuple[Buffer, Env]] = [(param, outer) for param in subject.kernel.params]
    found += [(placed.stmt.buffer, placed.stmt.env) for placed in subject.statements if isinstance(placed.stmt, Alloc)]
    told: set[str] = set()
    for buffer, env in found:
        node = _dtype_node(buffer)
        for name in _names(subject, node, env) if node is not None else ():
            if not _TYPES.fullmatch(name) and name not in told:
                told.add(name)
                text = f"`{buffer.name}` has the element type `{name}`, which the compiler does not know"
                yield Finding("TL787", buffer.node, text)


def _dtype_node(buffer: Buffer) -> cst.BaseExpression | None:
    call: cst.CSTNode | None = buffer.node
    if isinstance(call, cst.Param):
        call = call.annotation.annotation if call.annotation is not None else None
    if not isinstance(call, cst.Call):
        return None
    named = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    plain = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    return named.get("dtype", plain[1] if len(plain) > 1 else None)


def _names(subject: Subject, node: cst.BaseExpression, env: Env) -> list[str]:
    """The strings that an expression of a type may be: one that is written, or those of the calls."""
    value = subject.located.evaluator.static(node, env)
    if isinstance(value, str):
        return [value]
    if not isinstance(node, cst.Name):
        return []
    given = (caller.words.get(node.value) for caller in subject.callers)
    return sorted({word for word in given if word is not None})


# the factory ---------------------------------------------------------------------------------------------------------


def _returns(subject: Subject) -> Iterator[Finding]:
    """A factory that ``tilelang.jit`` calls gives nothing to compile if it returns nothing."""
    factory, names = subject.located.factory, subject.file.names
    for decorator in subject.located.node.decorators:
        if jit_call(called_by(decorator), names):
            text = f"`{subject.kernel.name}` is a kernel: `tilelang.jit` stands on a factory that returns one"
            yield Finding("TL785", decorator, text)
    if factory is None or not any(found.compiler == "jit" for found in compilations(subject.located)):
        return
    found = [node.value for node in returns(factory.node) if node.value is not None]
    name = factory.node.name
    if not found:
        yield Finding("TL785", name, f"`{name.value}` returns nothing: there is no kernel to compile")
    for value in found:
        if isinstance(value, (cst.BaseNumber, cst.BaseString)):
            yield Finding("TL785", value, f"`{name.value}` returns `{code(value)}`, not a kernel")
    yield from _tuned(subject, factory.node)


def called_by(decorator: cst.Decorator) -> cst.BaseExpression:
    """What a decorator calls, or is."""
    return decorator.decorator.func if isinstance(decorator.decorator, cst.Call) else decorator.decorator


def _tuned(subject: Subject, factory: cst.FunctionDef) -> Iterator[Finding]:
    """``tilelang/autotuner/tuner.py``: a tuner takes configurations, of parameters of the factory."""
    params = factory.params
    own = {param.name.value for param in (*params.params, *params.kwonly_params, *params.posonly_params)}
    for decorator in factory.decorators:
        if subject.file.names.resolve(called_by(decorator)) not in AUTOTUNE:
            continue
        if not isinstance(decorator.decorator, cst.Call):
            text = "`tilelang.autotune` takes its configurations: `autotune(configs=[...])`"
            yield Finding("TL730", decorator, text)
            continue
        given = argument(decorator.decorator, "configs", 0)
        listed = given.elements if isinstance(given, (cst.List, cst.Tuple)) and params.star_kwarg is None else ()
        dicts = [item.value for item in listed if isinstance(item.value, cst.Dict)]
        for key in [part.key for one in dicts for part in one.elements if isinstance(part, cst.DictElement)]:
            if isinstance(key, cst.SimpleString) and key.evaluated_value not in own:
                text = f"`{factory.name.value}` has no parameter {code(key)}, which the configurations set"
                yield Finding("TL730", key, text)
                return


# outputs -------------------------------------------------------------------------------------------------------------


def _positions(subject: Subject, compilation: Compilation, key: str) -> Iterator[Finding]:
    node = compilation.kwargs.get(key)
    if node is None:
        return
    if isinstance(node, (cst.BaseString, cst.Float)):
        yield Finding("TL788", node, f"`{key}` lists positions, not `{code(node)}`")
        return
    located, evaluator = subject.located, subject.file.evaluator
    env = located.factory.env if located.factory else located.env
    count = parameter_count(located)
    given = [evaluator.sym(item, item_env).constant for item, item_env in evaluator.sequence(node, env)]
    names = {param.index: param for param in subject.kernel.params}
    for value in (one for one in given if one is not None):
        if not -count <= value < count:
            text = f"`{key}` lists position {value}, but `{subject.kernel.name}` has {count} parameters"
        elif value % count not in names:
            text = f"`{key}` lists position {value}, which is not a tensor"
        else:
            text = _unwritten(subject, names[value % count], key)
        if text:
            yield Finding("TL788", node, text)
            return


def _unwritten(subject: Subject, tensor: Buffer, key: str) -> str:
    """Why what the runtime allocates makes no sense; empty if it does, or if that cannot be told."""
    statements = list(walk(subject.kernel.body))
    if any(isinstance(stmt, Opaque) and tensor.name in mentioned(stmt.node) for stmt in statements):
        return ""
    touched = [access for stmt in statements for access in accesses(stmt) if access.operand.buffer is tensor]
    if touched and not any(access.writes for access in touched):
        return f"`{key}` lists `{tensor.name}`, which the kernel only reads: it is allocated without a value"
    if touched and key != "out_idx" and not any(access.reads for access in touched):
        return f"`{key}` lists `{tensor.name}`, which the kernel only writes: its values are lost"
    return ""
