"""TL840, TL842, TL849 to TL851, TL868: global tensors that carry data within a kernel, on purpose or by mistake.

Evidence: facts 6, E21 and E47; ``src/transform/ascend_combinecv.cc`` pairs the copies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations, product

from tl2npu.checks.cross_core.channels import WORKSPACE, copy_side, kept, kept_channel, on_chip, sync_points
from tl2npu.checks.cross_core.meeting import meet, runs_equally
from tl2npu.checks.subject import Finding, Placed, Subject
from tl2npu.kernel.factories.configs import CV_SYNC, SYNC
from tl2npu.kernel.handover import Place, Traffic, disjoint, is_private, traffic
from tl2npu.kernel.model import Copy, ScopeBlock

_AUTOMATIC = re.compile(r"workspace_(\d+)")


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about every tensor that the kernel both writes and reads."""
    crossing = kept(subject.kernel)
    by_hand = any(isinstance(placed.stmt, ScopeBlock) for placed in subject.statements)
    for entry in crossing:
        yield from _check_private(subject, entry, by_hand)
    if by_hand:
        return
    for entry in crossing:
        yield from _check_name(entry)
        yield from _check_points(subject, entry)
    crossing_tensors = {entry.tensor for entry in crossing}
    for entry in traffic(subject.kernel).values():
        if WORKSPACE in entry.tensor.name and entry.tensor not in crossing_tensors and subject.is_on(CV_SYNC):
            yield from _check_points(subject, entry)
        yield from _check_same_core(subject, entry)
        if subject.is_split:
            yield from _check_stores(entry)
    yield from _check_clash(subject)


def _check_name(entry: Traffic) -> Iterator[Finding]:
    if WORKSPACE not in entry.tensor.name:
        text = f"`{entry.tensor.name}` carries data between the cores, but only names with `workspace` get flags"
        yield Finding("TL850", entry.readers[0].copy.node, text)


def _check_points(subject: Subject, entry: Traffic) -> Iterator[Finding]:
    """The i-th copy of the cube core is paired with the i-th of the vector core, if it has any."""
    points = sync_points(subject, entry.tensor)
    name = entry.tensor.name
    if not points["C"]:
        return
    if len(points["C"]) != len(points["V"]):
        where = (points["C"] if len(points["C"]) > len(points["V"]) else points["V"])[-1]
        text = f"`{name}` has {len(points['C'])} copies on the cube core and {len(points['V'])} on the vector core"
        help = (
            "" if points["V"] else f"rename it: the compiler pairs copies of tensors with `{WORKSPACE}` in their names"
        )
        yield Finding("TL840", where.stmt.node, text, help=help)
        return
    for cube, vector in zip(points["C"], points["V"], strict=True):
        if _writes(cube, entry) == _writes(vector, entry):
            text = f"`{name}`: the compiler pairs this copy with one of the other core in the same direction"
            yield Finding("TL840", vector.stmt.node, text)
            return
        channel = kept_channel(entry.tensor, cube, vector)
        if channel is not None and not runs_equally(channel, meet(subject, channel)):
            text = f"`{name}` is written and read under different conditions, so its flags do not balance"
            yield Finding("TL868", cube.stmt.node, text)
            return


def _writes(placed: Placed, entry: Traffic) -> bool:
    return isinstance(placed.stmt, Copy) and placed.stmt.dst.buffer is entry.tensor


def _check_private(subject: Subject, entry: Traffic, by_hand: bool) -> Iterator[Finding]:
    """Parts that several blocks write; an author who orders the cores by hand may know more of the blocks."""
    launch = subject.kernel.launched
    for place in entry.writers:
        if not is_private(place, subject.kernel, launch.grid):
            text = f"different blocks may write the same part of `{entry.tensor.name}`"
            cid = subject.kernel.cid
            apart = cid is not None and any(start.depends_on(cid) for start, _ in place.region)
            if not (apart and by_hand):
                yield Finding("TL842", place.copy.node, text, as_it_stands="warning" if apart else None)
            return


def _check_same_core(subject: Subject, entry: Traffic) -> Iterator[Finding]:
    """What a core stores and loads again, through memory that nothing orders."""
    for writer in entry.writers:
        for reader in entry.readers:
            if copy_side(writer.copy, entry.tensor) != copy_side(reader.copy, entry.tensor):
                continue
            if writer.order > reader.order or disjoint(writer.region, reader.region):
                continue
            if subject.is_on(SYNC) and _is_own(subject, writer, reader):
                continue  # the pass orders what one core stores and loads (`MTE3_MTE2` in the code that it makes)
            if any(other.order < reader.order and _between(entry, writer, other, reader) for other in entry.writers):
                continue
            text = f"`{entry.tensor.name}` is stored and loaded again by cores of one kind, which nothing orders"
            yield Finding("TL849", reader.copy.node, text)
            return


def _is_own(subject: Subject, writer: Place, reader: Place) -> bool:
    """Whether each vector core loads what it stored itself: the same rows, and any columns that are no core's own."""
    same = [there == here for here, there in zip(writer.region, reader.region, strict=True)]
    columns = (*writer.region[-1], *reader.region[-1])
    vid = subject.kernel.vid
    by_columns = len(same) > 1 and not (vid is not None and any(size.depends_on(vid) for size in columns))
    return all(same) or (all(same[:-1]) and by_columns)


def _check_stores(entry: Traffic) -> Iterator[Finding]:
    """Stores in rows of each other, or of a load: with ``threads=2`` one vector core stores what is the other one's."""
    stores = [place for place in entry.writers if copy_side(place.copy, entry.tensor) == "V"]
    loads = [place for place in entry.readers if copy_side(place.copy, entry.tensor) == "V"]
    for first, second in (*combinations(stores, 2), *product(loads, stores)):
        if len(first.region) != len(second.region):
            continue  # as many indices as the tensor has no axes: the front end says so
        apart = [(there - here).constant for (here, _), (there, _) in zip(first.region, second.region, strict=True)]
        rows = [step for step in apart[:-1] or apart if step != 0]
        alternatives = set(first.branches) & set(second.branches)
        clear = first in loads or None not in apart
        if rows and clear and not alternatives and not disjoint(first.region, second.region):
            what = "two stores to" if first in stores else "a load and a store of"
            by = f"by {abs(rows[-1])}" if rows[-1] is not None else "by an unknown number"
            text = f"{what} `{entry.tensor.name}` overlap, shifted {by}, and nothing orders the two vector cores"
            yield Finding("TL849", second.copy.node, text)
            return
    only_read = [stmt for stmt in entry.element_reads if stmt not in entry.element_writes]
    if stores and only_read:  # both cores read the element, one stores it
        text = f"an element of `{entry.tensor.name}` is read, which a store may change on the other vector core"
        yield Finding("TL849", stores[0].copy.node, text)


def _between(entry: Traffic, writer: Place, other: Place, reader: Place) -> bool:
    """The other core writes the same place in between: the reader means that one."""
    if copy_side(other.copy, entry.tensor) == copy_side(reader.copy, entry.tensor):
        return False
    return not disjoint(other.region, reader.region) and other.order > writer.order


def _check_clash(subject: Subject) -> Iterator[Finding]:
    """TL851: the compiler calls its own workspaces ``workspace_1``, ``workspace_2``, ..."""
    count = len(on_chip(subject))
    for param in subject.kernel.params:
        match = _AUTOMATIC.fullmatch(param.name)
        if match and 1 <= int(match.group(1)) <= count:
            text = f"the compiler uses the name `{param.name}` for its own workspace"
            yield Finding("TL851", param.node, text)
