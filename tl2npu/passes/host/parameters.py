"""TL315, TL126: parameters that nothing in a factory reads any more go, and from the calls in the file.

They stay where a call cannot be seen or read: a factory that is passed on, a call with stars, a tuner that sets them, a
decorator that may do as much. Of a kernel that is written anew they also stay where other files call the factory: it
is worth no other file's change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.tunings import Config, tuning_of
from tl2npu.passes.host.followers import followers_of
from tl2npu.passes.job import Job
from tl2npu.passes.names import unused
from tl2npu.results import Follower
from tl2npu.source.edits import Edits
from tl2npu.source.tree import calls_in, last_name, mentioned, names_in

_HARMLESS = frozenset({"jit", "lazy_jit", "cache", "lru_cache"})
"""Decorators that give a factory the arguments of its calls and no others."""


def read(job: Job) -> frozenset[str]:
    """The parameters of the factory that something in it reads."""
    factory = job.located.factory
    if factory is None:
        return frozenset()
    return frozenset(param.name.value for param in _parameters(factory.node)) & mentioned(factory.node.body)


def drop_unread(job: Job, before: Collection[str], used: Counter[str], *, alone: bool = False) -> None:
    """Take out the parameters that were read before and are not any more, or say of them.

    ``used``: how often each name of the file was used: what only the calls used goes, too. ``alone``: only where no
    other file has to follow.
    """
    located, now = job.located.factory, read(job)
    if located is None or now.issuperset(before):
        return
    factory = located.node
    gone = [param for param in _parameters(factory) if param.name.value in before and param.name.value not in now]
    names = [param.name.value for param in gone]
    configs = tuning_of(job.file, factory).configs
    tuned = any(name in config.values for name in names for config in configs)
    order = [*factory.params.posonly_params, *factory.params.params]
    made = None if tuned or not _is_plain(factory) else _calls(job, factory)
    places = [place for place, param in enumerate(order) if param in gone]
    given = [arg for call in made or () for arg in _given(call, places, names)]
    if not all(unused.is_harmless(arg.value) for arg in given):
        made = None
    followers = _followers(job, factory, alone=alone) if made is not None else None
    if made is None or followers is None or not (made or followers):
        _tell(job, factory, gone, configs, alone=alone)
        return
    edits = Edits(job.file.index)
    for param in gone:
        edits.remove(param)
        job.change("TL315", param, f"removed the unused parameter `{param.name.value}`")
    job.promise(followers, parameters=tuple(names), order=tuple(p.name.value for p in order))
    for arg in given:
        edits.remove(arg)
    job.apply(edits)
    unused.drop_unused_names(job, used)


def all_calls(job: Job) -> Sequence[cst.Call]:
    """Every call of the factory, all of them in the file; none if there may be others."""
    factory = job.located.factory
    made = _calls(job, factory.node) if factory is not None else None
    return () if not made or factory is None or _followers(job, factory.node, alone=True) is None else made


def _parameters(factory: cst.FunctionDef) -> list[cst.Param]:
    params = factory.params
    return [*params.posonly_params, *params.params, *params.kwonly_params]


def _is_plain(factory: cst.FunctionDef) -> bool:
    """No decorator may call the factory with arguments of its own."""
    for decorator in factory.decorators:
        node = decorator.decorator
        if last_name(node.func if isinstance(node, cst.Call) else node) not in _HARMLESS:
            return False
    return True


def _followers(job: Job, factory: cst.FunctionDef, *, alone: bool) -> tuple[Follower, ...] | None:
    """The other files that call the factory; with ``alone`` None if there are any, or if that is not clear."""
    if not alone:
        return followers_of(job, factory)
    try:
        return None if followers_of(job, factory) else ()
    except Blocked:
        return None


def _calls(job: Job, factory: cst.FunctionDef) -> Sequence[cst.Call] | None:
    """Every call of the factory in the file; None if it is also named elsewhere, or if an argument cannot be told."""
    name = factory.name.value
    if job.elsewhere[name]:
        return None
    found = [c for c in calls_in(job.module) if isinstance(c.func, cst.Name) and c.func.value == name]
    mentions = sum(1 for n in names_in(job.module) if n.value == name and n is not factory.name)
    if mentions != len(found) or any(arg.star for call in found for arg in call.args):
        return None
    return found


def _tell(
    job: Job, factory: cst.FunctionDef, gone: Sequence[cst.Param], configs: Sequence[Config], *, alone: bool
) -> None:
    """Say of them: of a kernel that is written anew only where a tuner varies them or a call of the file names them."""
    names = [param.name.value for param in gone]
    if not alone:
        text = f"{', '.join(f'`{name}`' for name in names)} of `{factory.name.value}` are unused now"
        job.note("TL315", gone[0], f"{text}, but callers may pass them")
        return
    tuned = [name for name in names if any(name in config.values for config in configs)]
    rest = {frozenset((n, repr(v)) for n, v in config.values.items() if n not in names) for config in configs}
    if tuned and len(rest) < len(configs):
        kernels = "the same kernel" if len(rest) == 1 else f"{len(rest)} different kernels"
        text = f"nothing reads {_listed(tuned)} any more: the {len(configs)} configurations of the tuner make {kernels}"
        job.note("TL126", factory.name, text)
        return
    calls = (call for call in calls_in(job.module) if code(call.func) == factory.name.value)
    words = {arg.keyword.value for call in calls for arg in call.args if arg.keyword is not None} & {*names}
    if words:
        job.note("TL126", factory.name, f"nothing reads {_listed(sorted(words))} any more, and a call still sets it")


def _given(call: cst.Call, places: Collection[int], names: Collection[str]) -> Iterator[cst.Arg]:
    """The arguments of a call at some positions, and those with some names."""
    positional = [arg for arg in call.args if arg.keyword is None]
    yield from (positional[place] for place in places if place < len(positional))
    yield from (arg for arg in call.args if arg.keyword is not None and arg.keyword.value in names)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)
