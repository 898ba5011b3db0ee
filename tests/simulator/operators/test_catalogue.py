"""Every name of the Ascend catalogue has a meaning in the simulator or a named refusal, never both."""

from __future__ import annotations

from tests.each import each
from tl2npu.dialects.ascend import OPERATORS
from tl2npu.simulator import operators  # noqa: F401  (registers)
from tl2npu.simulator.frontend.language import NAMES
from tl2npu.simulator.machine.emit.operators import _NOTHING, _SETS, _WAITS
from tl2npu.simulator.operators import registry

SYNC = _NOTHING | _SETS | _WAITS


def understood(name: str) -> bool:
    """True for a name with a meaning of its own in Ascend kernels."""
    return name in registry.names(gpu=False) or name in NAMES or name in SYNC


@each(sorted(OPERATORS), str)
def test_a_meaning_or_a_reason(name: str) -> None:
    assert understood(name) or registry.refusal(name, gpu=False)
    assert not (name in registry.names(gpu=False) and registry.refusal(name, gpu=False))


def test_the_catalogue_is_large() -> None:
    assert len(OPERATORS) > 400


def test_only_known_names_are_refused() -> None:
    assert registry.refusal("no_such_name", gpu=False) is None
    assert registry.refusal("no_such_name", gpu=True) is None


def test_a_refused_name_has_no_gpu_meaning_in_an_ascend_kernel() -> None:
    assert registry.meaning("cumsum", gpu=True) is not None
    assert registry.meaning("cumsum", gpu=False) is None


@each(sorted(n for n in registry.names(gpu=False) if "@" not in n), str)
def test_the_parameters_are_those_of_the_catalogue(name: str) -> None:
    import inspect

    if name not in OPERATORS:
        return
    found = registry.meaning(name, gpu=False)
    assert found is not None
    parameters = list(inspect.signature(found.function).parameters.values())[1:]
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    known = {p.name for p in OPERATORS[name].params} | set(OPERATORS[name].extras)
    missing = [
        p.name for p in OPERATORS[name].params if p.kind != "variadic" and p.name not in {q.name for q in parameters}
    ]
    assert not missing
    required = {p.name for p in parameters if p.default is p.empty} - {"registers"}
    assert required <= known
