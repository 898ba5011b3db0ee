"""``tl2npu verify --reference``: the launches of a trace, repeated with the kernels of a file.

A trace is a list of launches with their arrays (``tl2npu.traces.reading``). The simulator, an NPU and CANN's simulator
repeat the launches; the compiler is given the recorded arguments of the factories.
"""

from __future__ import annotations

import ast
import re
import tempfile
import textwrap
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np

from tl2npu.simulator.arithmetic.precise import Precise
from tl2npu.simulator.ir import dtypes
from tl2npu.traces.child.trace_writer import text_digest
from tl2npu.traces.patterns import of_bits
from tl2npu.traces.reading import Launch, Tensor, Trace, TraceError, kernels_of, left_out, open_trace
from tl2npu.verified import VerifyResult
from tl2npu.verify import devices, process
from tl2npu.verify.job import Job
from tl2npu.verify.judge import UNVERIFIED, Findings, Runner, concluded, repeat, to_prove
from tl2npu.verify.launching import beside
from tl2npu.verify.layouts import Arrays
from tl2npu.verify.loading import Source
from tl2npu.verify.naming import Place, places
from tl2npu.verify.recording import Recording, keep
from tl2npu.verify.settings import Call, Settings, UsageError


def verify(
    old: Source | None,
    new: Source,
    settings: Settings,
    runner: Runner = process.apart,
    changed: Sequence[str] | None = None,
) -> VerifyResult:
    """Repeat every launch of ``settings.reference`` with the kernels of ``new`` and compare with what was recorded.

    ``old``: the file that was recorded, which tells the tolerances and the exact results; None where only the trace is
    there. A folder that is no trace comes back as ``error``. Raises UsageError for settings that do not fit, and
    NotHere where the machine lacks what the backend needs.
    """
    assert settings.reference is not None
    shown = old or new
    result = VerifyResult(shown.shown, new.shown, settings.backend.name, settings.arithmetic)
    try:
        trace = open_trace(Path(settings.reference))
        if not trace.launches:
            raise TraceError(f"{settings.reference}: no launch was recorded")
        if settings.backend.name == "compile":
            found = _compiled(trace, old, new, settings, changed)
        else:
            found = _verified(trace, old, new, settings, runner, changed)
    except TraceError as error:
        return replace(result, error=str(error))
    version = trace.versions.get("tilelang", "")
    recorded = ", ".join([trace.device, *([f"tilelang {version}"] if version else [])])
    return replace(found, reference=f"the trace {settings.reference} ({recorded})")


def _verified(
    trace: Trace, old: Source | None, new: Source, settings: Settings, runner: Runner, changed: Sequence[str] | None
) -> VerifyResult:
    if settings.golden and old is None:
        raise UsageError("--golden fp64 needs the old file: give OLD and NEW")
    shown = old or new
    by_name = {place.name: place for place in places(shown.text)}
    findings = _begun(trace, old)
    launched = {kernel: by_name.get(kernel, Place(kernel, 1, 1, 1)) for kernel, _ in kernels_of(trace)}
    findings.launched = {name: place.line for name, place in launched.items()}
    with ExitStack() as stack:
        execute = None
        if settings.backend.name != "sim":
            execute = stack.enter_context(devices.started(None, new, settings))
            findings.notes += execute.general()
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tl2npu-launches-"))
        usable = [launch for launch in trace.launches if _is_usable(launch, findings)]
        for launch in usable:
            keep(Path(folder), recording_of(trace, launch))
        findings.launches = len(usable)
        factories = tuple(dict.fromkeys(launch.factory for launch in usable))
        if old is not None and usable:
            ended = runner(Job("prepare", old, settings, folder, (), factories))
            findings.take(ended, settings.timeout, old.shown)
        if usable and not findings.broken:
            repeat(Job("replay", new, settings, folder, (), factories), runner, findings, execute)
    wanted = set(launched)
    if old is not None:
        wanted |= to_prove(list(by_name.values()), old.text, new.text, changed)
    before = old or Source("", new.path, new.shown)
    return concluded(before, new, settings, findings, [*by_name.values()], wanted)


def _begun(trace: Trace, old: Source | None) -> Findings:
    """What a trace tells before anything is executed."""
    notes = [f"not recorded, {why} ({count}x)" for why, count in left_out(trace).items()]
    return Findings(notes=notes + (_othertexts(trace, old) if old is not None else []))


def _compiled(
    trace: Trace, old: Source | None, new: Source, settings: Settings, changed: Sequence[str] | None
) -> VerifyResult:
    """Have the kernels of ``new`` compiled with the recorded arguments."""
    from tl2npu.verify import by_compiler

    findings = _begun(trace, old)
    usable = [launch for launch in trace.launches if _is_callable(launch, findings)]
    calls = {str(call): call for call in (_call(new, launch) for launch in usable)}
    recorded = {launch.kernel: _call(new, launch).factory for launch in trace.launches}
    settings = replace(settings, calls=tuple(calls.values()))
    return by_compiler.verify(old, new, settings, changed, recorded, findings)


def _call(new: Source, launch: Launch) -> Call:
    """The call of the new factory for a recorded launch, without the parameters that the new one has lost."""
    functions = {node.name: node for node in ast.parse(new.text).body if isinstance(node, ast.FunctionDef)}
    name, arguments = launch.factory, launch.arguments or {}
    if name in functions and not _is_factory(functions[name]):
        name = next((n for n in beside(name) if n in functions and _is_factory(functions[n])), name)
    if name not in functions:
        return Call(name, arguments)
    taken = functions[name].args
    names = {arg.arg for arg in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs)}
    further = arguments.get(taken.kwarg.arg, {}) if taken.kwarg is not None else {}
    return Call(name, {**{key: arguments[key] for key in arguments if key in names}, **further})


def _is_factory(function: ast.FunctionDef) -> bool:
    """Whether ``tilelang.jit`` makes a factory of a function."""
    return any(re.search(r"\bjit\b", ast.unparse(decorator)) for decorator in function.decorator_list)


def _is_usable(launch: Launch, findings: Findings) -> bool:
    """Whether a launch can be repeated; where not, what is missing is a finding."""
    if launch.data is not None:
        return _is_callable(launch, findings)
    text = "a launch was recorded without its inputs, which exceed --max-bytes"
    findings.problem(UNVERIFIED, text, launch.kernel)
    return False


def _is_callable(launch: Launch, findings: Findings) -> bool:
    """Whether the factory of a launch can be called again; where not, the reason is a finding."""
    if launch.arguments is None:
        text = f"the arguments of {launch.factory or 'its factory'} were not recorded"
        findings.problem(UNVERIFIED, f"{text}: {launch.missing or 'they are not known'}", launch.kernel)
    return launch.arguments is not None


def recording_of(trace: Trace, launch: Launch) -> Recording:
    """A launch of a trace as ``verify`` keeps launches. Raises TraceError."""
    values = trace.load(launch)
    inputs: Arrays = {}
    outputs: Arrays = {}
    undefined: Arrays = {}
    for tensor in launch.tensors:
        kind = dtypes.numpy_dtype(tensor.dtype)
        poison = np.full(tensor.shape, Precise.poison(tensor.dtype), kind)
        inputs[tensor.name] = _typed(values.before, tensor, poison)
        outputs[tensor.name] = _typed(values.after, tensor, inputs[tensor.name])
        if tensor.name in values.places:
            mask = np.ones(tensor.shape, bool)
            mask.reshape(-1)[values.places[tensor.name]] = False
            undefined[tensor.name] = mask
    arguments = launch.arguments or {}
    scratch = frozenset(tensor.name for tensor in launch.tensors if tensor.role == "scratch")
    return Recording(
        launch.number,
        launch.kernel,
        launch.turn,
        f"{launch.factory}({', '.join(f'{name}={value!r}' for name, value in arguments.items())})",
        launch.factory,
        arguments,
        tuple(tensor.name for tensor in launch.tensors),
        frozenset(tensor.name for tensor in launch.tensors if tensor.role in ("out", "scratch")),
        scratch,
        launch.given,
        launch.returned,
        {},
        inputs,
        outputs,
        launch.scalars,
        {tensor.name: tensor.shares for tensor in launch.tensors if tensor.shares is not None},
        {},
        {},
        undefined=undefined,
    )


def _typed(values: Arrays, tensor: Tensor, default: np.ndarray) -> np.ndarray:
    """The stored bits of a tensor in its element type."""
    return of_bits(values[tensor.name], tensor.dtype) if tensor.name in values else default


def is_recorded(trace: Trace, source: Source) -> bool:
    """True if the kernels of the trace are those of a file: the text of each factory is what was recorded."""
    digests = texts(source.text)
    known = [launch for _, launch in kernels_of(trace) if launch.source_sha256 is not None]
    return bool(known) and all(launch.source_sha256 in digests.values() for launch in known)


def _othertexts(trace: Trace, old: Source) -> list[str]:
    """A note for each kernel whose text is not the one that was recorded."""
    digests = texts(old.text)
    return [
        f"{name}: the trace was recorded with another version of {launch.factory}"
        for name, launch in kernels_of(trace)
        if launch.factory in digests and launch.source_sha256 not in (None, digests[launch.factory])
    ]


def texts(text: str) -> dict[str, str]:
    """The digests of the outermost functions of a file, with their decorators, as the recorder forms them."""
    lines = text.splitlines(keepends=True)
    found: dict[str, str] = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            body = textwrap.dedent("".join(lines[first - 1 : node.end_lineno]))  # lines of blanks become empty, too
            found[node.name] = text_digest(body if body.endswith("\n") else body + "\n")
    return found
