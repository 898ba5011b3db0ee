"""TL106: what tunes a factory of several kernels. ``tilelang.autotune`` compiles and times one kernel.

The new decorator takes the same configurations and does the same for the function that runs the kernels: where a call
leaves out all that they set, each is built and timed, and the fastest is given, with ``latency`` and ``config``.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.factories.tunings import AUTOTUNE
from tl2npu.source.index import Index
from tl2npu.source.names import Names
from tl2npu.source.tree import nodes_of

_NAME = "fastest"
_TIMED = frozenset({"warmup", "rep"})
TEXT = '''

def fastest(configs, warmup=25, rep=100):
    """`autotune` for a factory of several kernels: they are timed together, the fastest configuration is taken."""
    configs = list(configs)

    def decorate(factory):
        known = {}

        def tuned(*args, **kwargs):
            key = args, tuple(sorted(kwargs.items()))
            if key in known:
                return known[key]
            if {*factory.__code__.co_varnames[: len(args)], *kwargs} & configs[0].keys():
                known[key] = factory(*args, **kwargs)
                return known[key]
            for config in configs:
                try:
                    kernel = factory(*args, **kwargs, **config)
                    latency = kernel.get_profiler().do_bench(warmup=warmup, rep=rep)
                except Exception as error:
                    print(f"{config}: {error}")
                    continue
                if key not in known or latency < known[key].latency:
                    known[key] = kernel
                    kernel.latency, kernel.config, kernel.ref_latency = latency, config, None
            if key not in known:
                raise RuntimeError("none of the configurations could be timed")
            return known[key]

        return tuned

    return decorate
'''

RESULTS = frozenset({"latency", "config", "ref_latency"})
"""What a tuner adds to the kernel that it gives."""


def tuner_of(index: Index, names: Names, factory: cst.FunctionDef) -> cst.Decorator | None:
    """The first decorator, if it is a tuner of ``configs`` that are written out or given by a call, and of times."""
    first = factory.decorators[0] if factory.decorators else None
    call = first.decorator if first is not None else None
    if not isinstance(call, cst.Call) or names.resolve(call.func) not in AUTOTUNE:
        return None
    given = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    configs = given.get("configs")
    plain = len(given) == len(call.args) and given.keys() <= {"configs", "timeout", *_TIMED}
    if not plain or not (
        isinstance(configs, (cst.Call, cst.ListComp)) or (isinstance(configs, cst.List) and configs.elements)
    ):
        return None
    return first


def is_tuned(index: Index, name: str) -> bool:
    """Whether a function of the module has the new decorator."""
    functions = [item for item in index.module.body if isinstance(item, cst.FunctionDef)]
    calls = [item.decorator for own in functions if own.name.value == name for item in own.decorators]
    names = {call.func.value for call in calls if isinstance(call, cst.Call) and isinstance(call.func, cst.Name)}
    return any(item.name.value in names and _is_made(index, item) for item in functions)


def with_tuner(
    index: Index, factory: cst.FunctionDef, tuner: cst.Decorator, runner: cst.FunctionDef
) -> list[cst.FunctionDef]:
    """The function that takes the place of a tuned factory, below the decorator where the file has it not yet."""
    call = cst.ensure_type(tuner.decorator, cst.Call)
    kept = [arg for arg in call.args if arg.keyword is not None and arg.keyword.value != "timeout"]
    kept[-1] = kept[-1].with_changes(comma=call.args[-1].comma)
    above = [
        item for item in index.module.body[: index.module.body.index(factory)] if isinstance(item, cst.FunctionDef)
    ]
    made = next((item for item in above if _is_made(index, item)), None)
    name = made.name.value if made is not None else _NAME
    taken = {item.value for item in nodes_of(index.module, cst.Name)} if made is None else ()
    while name in taken:
        name += "_"
    new = tuner.with_changes(decorator=call.with_changes(func=cst.Name(name), args=kept))
    tuned = runner.with_changes(decorators=[new])
    if made is not None:
        return [tuned]
    text = _text(index).replace(f"def {_NAME}", f"def {name}")
    return [cst.ensure_type(cst.parse_statement(text, index.module.config_for_parsing), cst.FunctionDef), tuned]


def _is_made(index: Index, function: cst.FunctionDef) -> bool:
    return (
        function.name.value.rstrip("_") == _NAME
        and index.module.code_for_node(function.body).strip() == _text(index).partition(":\n")[2].strip()
    )


def _text(index: Index) -> str:
    return TEXT.replace("    ", index.module.default_indent)
