"""TL315: sizes of a factory that only served slots and slices go with their last use, and from the calls in the file.

They stay where a call cannot be seen or read: a factory that is passed on, a call with stars, a tuner that sets them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import libcst as cst

from tl2npu.kernel.factories.tunings import configs_of
from tl2npu.passes.host.followers import followers_of
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import calls_in, names_in


def drop_unused(job: Job, before: Counter[str]) -> None:
    """Take out the parameters that were used before and are not any more; ``before`` counts the names of the file."""
    if job.located.factory is None:
        return
    factory = job.located.factory.node
    counts = Counter(name.value for name in names_in(factory))
    order = [*factory.params.posonly_params, *factory.params.params]
    every = [*order, *factory.params.kwonly_params]
    gone = [p for p in every if counts[p.name.value] == 1 and before[p.name.value] > _uses(job, p.name.value)]
    if not gone:
        return
    made = _calls(job, factory)
    followers = followers_of(job, factory)
    tuned = {name for config in configs_of(job.file, factory, {}) for name in config.values}
    if made is None or not (made or followers) or tuned & {p.name.value for p in gone}:
        listed = ", ".join(f"`{p.name.value}`" for p in gone)
        job.note("TL315", gone[0], f"{listed} of `{factory.name.value}` are unused now, but callers may pass them")
        return
    edits = Edits(job.file.index)
    for param in gone:
        edits.remove(param)
        job.change("TL315", param, f"removed the unused parameter `{param.name.value}`")
    job.promise(followers, parameters=tuple(p.name.value for p in gone), order=tuple(p.name.value for p in order))
    places = [i for i, p in enumerate(order) if p in gone]
    names = {p.name.value for p in gone}
    for call in made:
        positional = [arg for arg in call.args if arg.keyword is None]
        for place in places:
            if place < len(positional):
                edits.remove(positional[place])
        for arg in call.args:
            if arg.keyword is not None and arg.keyword.value in names:
                edits.remove(arg)
    job.apply(edits)


def _uses(job: Job, name: str) -> int:
    return sum(1 for n in names_in(job.module) if n.value == name) + job.elsewhere[name]


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
