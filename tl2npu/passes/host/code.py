"""TL124, TL125: host code of a file whose kernels all run on the NPU now."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import libcst as cst

from tl2npu.codes import finding
from tl2npu.dialects.pass_configs import canonical_key
from tl2npu.kernel.expressions import code, one_line
from tl2npu.kernel.factories.factory import is_prim_func
from tl2npu.passes.host import fp8
from tl2npu.passes.host import methods as host_methods
from tl2npu.passes.host.imports import add_import, without_unused
from tl2npu.passes.plain.types.names import TypeNames
from tl2npu.passes.plain.types.rewrite import rewrite
from tl2npu.results import Diagnostic, KernelResult
from tl2npu.source.edits import Edits
from tl2npu.source.index import Index
from tl2npu.source.literals import text_of
from tl2npu.source.names import Names
from tl2npu.source.tree import children, last_name, mentioned

_CORES = 'int(torch.npu.get_device_properties("npu").cube_core_num)'
_NO_CAPABILITY = "(0, 0)"
"""``torch.npu.get_device_capability`` returns None, and the guide of torch_npu says to write a fixed pair."""
_BENCH_ARGUMENTS = frozenset({"backend", "dynamic_symbolic_constraints", "device", "early_stop_baseline", "cache_size"})
_ABOUT_GPUS = (
    *("torch.cuda.", "tilelang.cuda.", "tilelang.carver.arch.CUDA", "tilelang.carver.arch.CDNA"),
    *("tilelang.jit.JITImpl", "tilelang.par_compile", "tilelang.tools.cuda."),
    *("tilelang.contrib.nvcc.", "tilelang.contrib.hipcc.", "tilelang.contrib.rocm."),
)
_TUNER_ARGUMENTS = frozenset({"use_pipeline", "enable_grouped_compile", "group_compile_size", "benchmark_devices"})
_TUNER_ARGUMENTS |= {"benchmark_multi_gpu", "early_stop", "early_stop_factor"}
_HOST_KINDS = frozenset({cst.Attribute, cst.SimpleString, cst.FormattedString, cst.Call, cst.Decorator})
_TIMED = frozenset({"set_profile_args", "autotune"})
_PERHAPS = (cst.If, cst.Try, cst.TryStar, cst.IfExp, cst.BooleanOperation, cst.Lambda, cst.ListComp, cst.GeneratorExp)
_GPU_MARKS = ("requires_cuda", "requires_rocm", "requires_gfx")


@dataclass(eq=False)
class Host:
    """The module with its host code for the NPU; ``changes`` and ``left`` hold nodes with what is said of them."""

    module: cst.Module
    type_variables: frozenset[str] = frozenset()
    changes: list[tuple[cst.CSTNode, str]] = field(default_factory=list)
    left: list[tuple[cst.CSTNode, str]] = field(default_factory=list)
    of_fp8: list[tuple[cst.CSTNode, str]] = field(default_factory=list)
    """What TL100 says of places that stay."""
    fatal: dict[cst.CSTNode, str | None] = field(default_factory=dict)
    """Of ``left``: what each call of a function comes to, with its name, or each import of the file, with None."""


def of_file(original: Index, module: cst.Module, kernels: Sequence[KernelResult]) -> Host:
    """The module, its host code for the NPU if no kernel is left that needs a GPU; what changed, what stays."""
    if not any(kernel.source == "gpu" and kernel.rewritten for kernel in kernels):
        return Host(module)
    left = [kernel.name for kernel in kernels if kernel.disposition == "refused"]
    if left:
        refused = {name.partition(".")[0] for name in left}
        own = frozenset(kernel.name.partition(".")[0] for kernel in kernels if kernel.rewritten) - refused
        host = Host(module, _type_variables(Tree(original)))
        tree = _stepwise(host, Tree(original.after(module), lambda part: _is_one_of(part, own)), (_devices, _cores))
        tree = _stepwise(host, Tree(tree.index, lambda part: _mentions(part, own, refused) == (True, False)), (_types,))
        if host.changes:
            _without_unused(host, original, tree)
        _note_types(host, Tree(original.after(host.module), lambda part: all(_mentions(part, own, refused))), own)
        text = f"host code was not changed, because `{left[0]}` still needs a GPU"
        host.left += [] if (first := uses_gpu(host.module)) is None else [(first, text)]
        return host
    return retarget(original, module, any("TL100" in kernel.codes for kernel in kernels))


def remaining(host: Host, original: Index, kernels: Sequence[KernelResult]) -> Iterator[Diagnostic]:
    """What is said of host code that stays: an error of the kernels that no call gets to for it, and of the import."""
    for node, text in host.of_fp8:
        yield finding("TL100", original.first_line(node) or 1, text)
    for node, text in host.left:
        found = finding("TL125", original.first_line(node) or 1, text)
        function = host.fatal.get(node, "")
        own = [kernel.name for kernel in kernels if kernel.rewritten and kernel.name.partition(".")[0] == function]
        if function is None:
            yield replace(found, severity="error", message=f"{text}, so this file cannot be imported")
        for name in own:
            yield replace(found, severity="error", kernel=name, message=f"{text}, so `{function}` fails on an NPU")
        if function is not None and not own:
            yield found


@dataclass(eq=False)
class Tree:
    """A tree of the file between two steps; ``only``: which statements of the file count, None for all of them."""

    index: Index
    only: Callable[[cst.CSTNode], bool] | None = None

    @cached_property
    def names(self) -> Names:
        """What its names mean."""
        return Names(self.index)

    @cached_property
    def nodes(self) -> Sequence[cst.CSTNode]:
        """Every node outside of prim_funcs, in order."""
        found: list[cst.CSTNode] = []
        stack: list[cst.CSTNode] = [self.index.module]
        if self.only is not None:
            stack = [node for node in reversed(self.index.module.body) if self.only(node)]
        while stack:
            node = stack.pop()
            if type(node) is cst.FunctionDef and is_prim_func(node, self.names):
                continue
            found.append(node)
            stack += reversed(children(node))
        return found


def retarget(original: Index, module: cst.Module, widened: bool = False) -> Host:
    """Devices, profilers and the like; ``original`` tells which imports had a use before the migration.

    ``widened``: kernels of the file take float16 where they took 8-bit floats.
    """
    host = Host(module, _type_variables(Tree(original)))
    tree = Tree(original.after(module))
    steps = (*((_fp8_names, _fp8_values) if widened else ()), _types, _devices, _cores, _methods)
    tree = _stepwise(host, tree, steps)
    _without_unused(host, original, tree)
    if host.module is not tree.index.module:
        tree = Tree(tree.index.after(host.module))
    _note_rest(host, tree)
    return host


def _is_one_of(part: cst.CSTNode, functions: frozenset[str]) -> bool:
    return isinstance(part, cst.FunctionDef) and part.name.value in functions


def _mentions(part: cst.CSTNode, own: frozenset[str], refused: set[str]) -> tuple[bool, bool]:
    """Whether host code has to do with migrated kernels, and with those that stay; theirs is no host code."""
    names = mentioned(part)
    is_host = not _is_one_of(part, own) and not _is_one_of(part, frozenset(refused))
    return is_host and bool(names & own), is_host and bool(names & refused)


def _note_types(host: Host, tree: Tree, own: frozenset[str]) -> None:
    """Variables with an element type that a migrated kernel gets from code that a GPU still needs."""
    dtypes = TypeNames(tree.names, tree.index, tree.nodes)
    for call in tree.nodes:
        if isinstance(call, cst.Call) and isinstance(call.func, cst.Name) and call.func.value in own:
            for arg in call.args:
                if dtypes.is_variable(arg.value):
                    text = f"`{code(arg.value)}` is an element type for a GPU here; `{call.func.value}` needs its name"
                    host.left.append((arg, text))


def _stepwise(host: Host, tree: Tree, steps: Sequence[Callable[[Host, Tree, Edits], None]]) -> Tree:
    """The tree behind all steps, of which each sees what those before it have made."""
    for step in steps:
        edits = Edits(tree.index)
        step(host, tree, edits)
        if edits:
            tree = Tree(tree.index.after(edits.apply(host.module)), tree.only)
        host.module = tree.index.module
    return tree


def _without_unused(host: Host, original: Index, tree: Tree) -> None:
    """Imports that had a use before the migration, and have none now, go."""
    host.module, gone = without_unused(original.module, tree.index)
    host.changes += [(node, f"removed the unused import of `{name}`") for node, name in gone]


def uses_gpu(module: cst.Module) -> cst.CSTNode | None:
    """The first thing in the host code that needs a GPU."""
    host = Host(module)
    tree = Tree(Index.of(module))
    _devices(host, tree, Edits(tree.index))
    return next((node for node, _ in host.changes), None)


def _type_variables(original: Tree) -> frozenset[str]:
    """What held a dtype object before the kernels were migrated."""
    return frozenset(TypeNames(original.names, original.index, original.nodes).variables)


def _fp8_names(host: Host, tree: Tree, edits: Edits) -> None:
    host.changes += fp8.name_types(tree.index, tree.names, tree.nodes, edits)


def _fp8_values(host: Host, tree: Tree, edits: Edits) -> None:
    changed, host.of_fp8 = fp8.to_float16(tree.index, tree.names, tree.nodes, edits)
    host.changes += changed


def _types(host: Host, tree: Tree, edits: Edits) -> None:
    dtypes = TypeNames(tree.names, tree.index, tree.nodes)
    dtypes.learn(host.type_variables)
    for node, new in rewrite(edits, dtypes, tree.nodes, refuse=False):
        host.changes.append((node, f"`{one_line(node)}` -> `{one_line(new)}`"))


def _devices(host: Host, tree: Tree, edits: Edits) -> None:
    index, names = tree.index, tree.names
    done: set[int] = set()

    def replace(node: cst.CSTNode, new: cst.CSTNode) -> None:
        edits.replace(node, new)
        done.add(id(node))
        host.changes.append((node, f"`{one_line(node)}` -> `{one_line(new)}`"))

    for node in tree.nodes:
        if type(node) not in _HOST_KINDS:
            continue
        if done and any(id(above) in done for above in index.ancestors(node)):
            continue
        if type(node) is cst.Attribute:
            _attribute(index, names, node, replace)
        elif type(node) is cst.SimpleString and is_device(index, node):
            replace(node, device_text(node))
        elif type(node) is cst.FormattedString and is_device(index, node):
            replace(node, joined_device(node))
        elif type(node) is cst.Call and names.resolve(node.func) == "torch.cuda.get_device_capability":
            replace(node, cst.parse_expression(_NO_CAPABILITY))
        elif type(node) is cst.Call:
            for arg in _bench_arguments(node):
                edits.remove(arg)
                tuner = arg.keyword is not None and arg.keyword.value in _TUNER_ARGUMENTS
                why = "is not an option of the tuner on Ascend" if tuner else "selects a GPU timer"
                host.changes.append((arg, f"`{one_line(arg).strip(' ,') if tuner else one_line(arg.value)}` {why}"))
        elif type(node) is cst.Decorator and _is_gpu_mark(names, node):
            edits.remove(node)
            host.changes.append((node, f"`{one_line(node.decorator)}` asks for a GPU"))


def _attribute(
    index: Index, names: Names, node: cst.Attribute, replace: Callable[[cst.CSTNode, cst.CSTNode], None]
) -> None:
    parent = index.parent(node)
    if node.attr.value == "is_cuda":  # of a tensor: a property that nothing sets or calls
        called = isinstance(parent, cst.Call) and parent.func is node
        if not called and not isinstance(parent, (cst.AssignTarget, cst.AnnAssign)) and names.resolve(node) is None:
            replace(node.attr, cst.Name("is_npu"))
        return
    if node.attr.value == "cuda" and isinstance(parent, cst.Call) and parent.func is node:
        if names.resolve(node) is None or not (names.resolve(node) or "").startswith("torch."):
            replace(node.attr, cst.Name("npu"))
        return
    if names.resolve(node.value) == "torch.cuda" and node.attr.value in SAME_IN_NPU:
        assert isinstance(node.value, cst.Attribute)
        replace(node.value.attr, cst.Name("npu"))
    if node.attr.value == "CUDAGraph" and names.resolve(node.value) == "torch.cuda":
        assert isinstance(node.value, cst.Attribute)
        replace(node.value.attr, cst.Name("npu"))
        replace(node.attr, cst.Name("NPUGraph"))


def _bench_arguments(call: cst.Call) -> Iterator[cst.Arg]:
    name = last_name(call.func)
    gone = _BENCH_ARGUMENTS if name == "do_bench" else frozenset({"backend"}) if name in _TIMED else frozenset()
    gone |= _TUNER_ARGUMENTS if name in {"autotune", "run"} else frozenset()
    yield from (arg for arg in call.args if arg.keyword is not None and arg.keyword.value in gone)


def _is_gpu_mark(names: Names, node: cst.Decorator) -> bool:
    func = node.decorator.func if isinstance(node.decorator, cst.Call) else node.decorator
    resolved = names.resolve(func) or ""
    return resolved.startswith("tilelang.testing.") and resolved.rsplit(".", 1)[-1].startswith(_GPU_MARKS)


def _cores(host: Host, tree: Tree, edits: Edits) -> None:
    """As many blocks as there are cores: streaming multiprocessors become cube cores."""
    names = tree.names
    for node in tree.nodes:
        if type(node) is cst.Call:
            resolved = names.resolve(node.func) or ""
            if resolved.startswith("tilelang.") and resolved.endswith(".get_num_sms"):
                torch = names.spell("torch", at=node)
                if torch is None:
                    add_import(tree.index, edits, "import torch")
                edits.replace(node, cst.parse_expression(_CORES.replace("torch", torch or "torch")))
                host.changes.append((node, f"`{one_line(node)}` -> number of cube cores"))
        elif type(node) is cst.Attribute and node.attr.value == "multi_processor_count":
            edits.replace(node.attr, cst.Name("cube_core_num"))
            host.changes.append((node, "`multi_processor_count` -> number of cube cores"))


def _methods(host: Host, tree: Tree, edits: Edits) -> None:
    host.changes += host_methods.follow(tree.index, tree.names, edits)


def _note_rest(host: Host, tree: Tree) -> None:
    """What still names a GPU, one note for each place."""
    index, names = tree.index, tree.names
    host.left += host_methods.left(index, names)
    seen: set[int] = set()
    for node in tree.nodes:
        if (type(node) is not cst.Attribute and type(node) is not cst.Name) or id(node) in seen:
            continue
        resolved = names.resolve(node) or ""
        key = resolved.removeprefix("tilelang.PassConfigKey.")
        missing = key != resolved and canonical_key(key) is None
        if not (missing or resolved.startswith(_ABOUT_GPUS)) or index.enclosing(node, cst.ImportFrom, cst.Import):
            continue
        inner: cst.BaseExpression = node
        while isinstance(inner, cst.Attribute):
            seen.add(id(inner))
            inner = inner.value
        seen.add(id(inner))
        host.left.append((node, f"`{one_line(node)}` is for a GPU and has no known NPU counterpart"))
        if index.enclosing(node, *_PERHAPS) is None and index.enclosing(node, cst.Call) is not None:
            within = [above for above in index.ancestors(node) if isinstance(above, (cst.FunctionDef, cst.ClassDef))]
            if len(within) < 2 and not any(isinstance(above, cst.ClassDef) for above in within):
                host.fatal[node] = within[0].name.value if within else None


SAME_IN_NPU = frozenset(
    {
        *("Event", "Stream", "amp", "current_device", "current_stream", "default_stream", "device", "device_count"),
        *("empty_cache", "get_device_name", "get_device_properties", "get_rng_state", "graph", "init", "is_available"),
        *("manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_reserved", "mem_get_info"),
        *("memory_allocated", "memory_reserved", "reset_peak_memory_stats", "set_device", "set_rng_state", "stream"),
        *("synchronize",),
    }
)
"""What ``torch.npu`` has under the same name as ``torch.cuda``."""

_DEVICE = re.compile(r"cuda(:\d+)?")
_CALLS = frozenset({"device", "to", "set_default_device", "Generator", "empty", "zeros", "ones", "autocast"})


def is_device(index: Index, node: cst.SimpleString | cst.FormattedString) -> bool:
    """The text is the name of a device: it is given to torch, or to something that is called a device."""
    if isinstance(node, cst.SimpleString):
        value = text_of(node)
        if not isinstance(value, str) or not _DEVICE.fullmatch(value):
            return False
    elif not (node.parts and isinstance(node.parts[0], cst.FormattedStringText) and node.parts[0].value == "cuda:"):
        return False
    above: cst.CSTNode = node
    parent = index.parent(node)
    while isinstance(parent, (cst.IfExp, cst.BooleanOperation, cst.ComparisonTarget)):
        above, parent = parent, index.parent(parent)
    if isinstance(parent, cst.Arg):
        if parent.keyword is not None and "device" in parent.keyword.value:
            return True
        call = index.parent(parent)
        assert isinstance(call, (cst.Call, cst.ClassDef))
        return (
            isinstance(call, cst.Call)
            and (parent.keyword is None or code(parent.keyword) == "default")
            and (last_name(call.func) in _CALLS or any("device" in code(arg) for arg in call.args if arg is not parent))
        )
    if isinstance(parent, cst.Assign):
        return any("device" in code(target.target) for target in parent.targets)
    if isinstance(parent, (cst.Param, cst.AnnAssign)):
        return "device" in code(parent.name if isinstance(parent, cst.Param) else parent.target)
    if isinstance(parent, cst.Comparison):
        return "device" in code(parent)
    return isinstance(parent, cst.Return) and above is not None and _returns_device(index, parent)


def _returns_device(index: Index, node: cst.Return) -> bool:
    function = index.enclosing(node, cst.FunctionDef)
    return function is not None and "device" in function.name.value


def device_text(node: cst.SimpleString) -> cst.SimpleString:
    """``"npu:1"`` for ``"cuda:1"``, in the same quotes."""
    return node.with_changes(value=node.value.replace("cuda", "npu", 1))


def joined_device(node: cst.FormattedString) -> cst.FormattedString:
    """``f"npu:{rank}"`` for ``f"cuda:{rank}"``."""
    return node.with_changes(parts=[cst.FormattedStringText("npu:"), *node.parts[1:]])
