"""The estimates of every kernel of a text, each with what makes it slow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tl2npu.checks.memory_plan.capacity import Needs
from tl2npu.checks.subject import Subject
from tl2npu.cost.estimate import measured
from tl2npu.cost.notes import notes
from tl2npu.costs import Advice, Estimate
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.memory.inferred import infer_memory
from tl2npu.kernel.runtime import symbols_of
from tl2npu.options import Options
from tl2npu.source.index import Index


def estimates(
    text: str, path: str, options: Options, sizes: Mapping[str, int], cores: int | None = None
) -> list[Estimate]:
    """Every kernel of a file that is written for an NPU, for each known way to call it that differs in its sizes.

    ``sizes`` and ``cores`` are those that the user gives; they win. Raises :class:`~tl2npu.cost.estimate.NoRates`, and
    :class:`~tl2npu.source.text.SourceError` for a text that is no Python.
    """
    file = FileKernels(Index.parse(text))
    sizes = {**{name: sizes[symbol] for name, symbol in symbols_of(file).items() if symbol in sizes}, **sizes}
    found: list[Estimate] = []
    for located in file.located:
        kernel = located.read()
        infer_memory(kernel)
        if kernel.launch is None or kernel.dialect == "gpu":
            continue
        arms = Subject(kernel, file, located, options).arms
        calls = [
            (arm, needs, caller) for arm in arms for needs in (Needs.of_subject(arm),) for caller in needs.that_differ()
        ]
        for subject, needs, caller in calls:
            made, work = measured(subject, needs, caller, sizes, cores)
            told = notes(subject, caller, made, work, sizes, cores)
            advice = [Advice(note.code, file.index.position(note.node).line, note.message) for note in told]
            found.append(replace(made, line=file.index.position(located.node).line, advice=tuple(advice)))
    return list(dict.fromkeys(found))
