"""The check of one file: every kernel against the rules of Developer mode, and nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import libcst as cst

from tl2npu.across.grafts import grafted
from tl2npu.across.restore import with_dots
from tl2npu.checks.language import importing
from tl2npu.checks.run import check_as_it_stands
from tl2npu.checks.subject import Subject
from tl2npu.codes import finding
from tl2npu.imported import with_compiled
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.factories.located import Located
from tl2npu.kernel.style import dialect_of, is_gpu_kernel
from tl2npu.options import Options, Target
from tl2npu.passes.eager.factories import find_eager
from tl2npu.passes.host import importable
from tl2npu.passes.job import Job, diagnostic
from tl2npu.passes.no_launch import no_launch
from tl2npu.passes.unseen_kernels import undefined_names, unseen_kernels
from tl2npu.results import Diagnostic, FileResult, KernelResult
from tl2npu.source.index import Index
from tl2npu.source.names import Names
from tl2npu.source.text import SourceError
from tl2npu.source.tree import one_file
from tl2npu.suppress import Suppressions


@one_file()
def check_text(text: str, path: str, options: Options) -> FileResult:
    """Check every kernel of a file against the rules of Developer mode; nothing is changed."""
    try:
        native = Index.parse(text)
    except SourceError as error:
        return unparsable(text, path, error)
    across = grafted(native, path, text)
    result = _checked(text, path, options, across.index)
    result = replace(result, depends=across.files, places=across.places)
    result = result if across.index is native else with_dots(result, across.texts)
    return with_compiled(result, options, edit=False)[0]


def _checked(text: str, path: str, options: Options, original: Index) -> FileResult:
    file = FileKernels(original)
    suppressions = Suppressions.of(text)
    kernels: list[KernelResult] = []
    diagnostics: list[Diagnostic] = []
    nowhere = undefined_names(file, suppressions.covers, alone=False)
    for located in file.located:
        every, style = _check_kernel(original, file, located, options)
        every += [item for item in nowhere.get(original.position(located.node).line, ()) if item not in every]
        found = [item for item in every if not suppressions.covers(item.line, item.code)]
        diagnostics += found
        codes = tuple(sorted({d.code for d in found}))
        line = original.position(located.node).line
        errors = sum(d.severity == "error" for d in found)
        reason = f"{errors} errors" if errors else "no errors"
        kernels.append(KernelResult(located.key[0], line, style, "none", "unchanged", reason, codes))
    for kept in find_eager(original):
        why = "this is an eager kernel, but Ascend supports only prim_funcs (try `tl2npu migrate`)"
        found = [diagnostic(original, "TL102", kept.node, why, kept.name, "error"), *nowhere.get(kept.line, ())]
        found = [item for item in found if not suppressions.covers(item.line, item.code)]
        diagnostics += found
        codes = tuple(sorted({item.code for item in found}))
        kernels.append(KernelResult(kept.name, kept.line, "checked", "none", "unchanged", "eager", codes))
    places, notes = unseen_kernels(file, suppressions.covers, "checked")
    kernels += [replace(place, disposition="unchanged") for place in places]
    diagnostics += notes
    left_out = {kernel.name for kernel in kernels if not options.selects(path, kernel.name)}
    kernels = sorted((k for k in kernels if k.name not in left_out), key=lambda kernel: kernel.line)
    if any(_is_for(options.target, located, file.names) for located in file.located):
        failing = importing.failing(original, options.target)
        stops = [finding("TL734", original.first_line(node) or 1, said) for node, said in failing]
        beside = importing.beside_gpu(file)
        stops += [diagnostic(original, "TL735", kept.node, text, kept.key[0]) for kept, text in beside]
        diagnostics += [item for item in stops if not suppressions.covers(item.line, item.code)]
    diagnostics += unused_comments(suppressions)
    diagnostics = [item for item in diagnostics if item.kernel not in left_out]
    return FileResult(
        path, text, text, None, tuple(kernels), tuple(sorted(diagnostics, key=lambda d: (d.line, d.code)))
    )


def made_importable(
    original: Index,
    module: cst.Module,
    kernels: Sequence[KernelResult],
    target: Target,
    users: Callable[[str], Sequence[object]],
) -> tuple[cst.Module, list[tuple[cst.CSTNode, str]], list[Diagnostic]]:
    """The new module of a file, with kernels for the NPU, without what stops its import there; what was done, by node.

    The diagnostics are of what stops it still. ``users``: the other files that take a name from this one.
    """
    if not any(kernel.for_npu for kernel in kernels):
        return module, [], []
    is_new, said = module is not original.module, importable.Said()
    now = original.after(module) if is_new else original
    missing = [node for node, _ in importing.missing(now, target)]
    if missing and is_new and target == "ascendc":
        module, said = importable.mend(now, missing, users)
        now = now.after(module) if said else now
    stops = importing.failing(now, target) if missing else ()
    found = [finding("TL734", original.first_line(node) or 1, text) for node, text in stops]
    beside = importing.beside_refused(original, kernels)
    found += [replace(finding("TL735", kernel.line, text), kernel=kernel.name) for kernel, text in beside]
    return module, said, found


def _is_for(target: Target, located: Located, names: Names) -> bool:
    """Whether a kernel is written for the NPU, in the language of the target."""
    if target == "npuir":
        return dialect_of(located.node, names, located.targets) == "npuir"
    return not is_gpu_kernel(located.node, names)


def unparsable(text: str, path: str, error: SourceError) -> FileResult:
    """The result for a file that cannot be parsed."""
    found = finding("TL901", error.line or 1, str(error).removeprefix(f"line {error.line}: "))
    return FileResult(path, text, text, str(error), (), (found,))


def unused_comments(suppressions: Suppressions) -> list[Diagnostic]:
    """A finding for each comment that silences nothing."""
    return [finding("TL904", line, why) for line, why in suppressions.unused()]


def _check_kernel(
    original: Index, file: FileKernels, located: Located, options: Options
) -> tuple[list[Diagnostic], str]:
    """Findings, and whether it was checked as a kernel in ``expert`` mode."""
    job = Job(original, file, located.key, options)
    if job.kernel.launch is None:
        text = no_launch(located.node, file.names)
        return [diagnostic(original, "TL902", located.node, text, located.key[0])], "checked"
    subject = Subject(job.kernel, file, located, options)
    found = []
    for item in check_as_it_stands(subject):
        said = diagnostic(original, item.code, item.node, item.message, located.key[0], item.severity)
        can_write = job.kernel.launch.threads is not None  # whether others migrate at all is not known here
        found.append(replace(said, help=item.advice(said.help) if can_write else item.help or said.help))
    return found, "expert" if subject.is_expert else "checked"
