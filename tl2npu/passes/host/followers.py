"""TL915: other files that call a factory whose calls change. They follow, or the kernel stays as it is."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.across.imports import DOT, dotted_text
from tl2npu.across.users import Users
from tl2npu.kernel.blocked import Blocked
from tl2npu.passes.host.calls import Host, drop_arguments
from tl2npu.passes.job import Job
from tl2npu.results import Change, Follower, Promise
from tl2npu.source.edits import EditError, Edits
from tl2npu.source.index import Index
from tl2npu.source.layout import relayout
from tl2npu.source.names import Names
from tl2npu.source.text import SourceError
from tl2npu.source.tree import calls_in, names_in, nodes_of


class Unable(Exception):
    """A file that cannot follow; ``str()`` says why, ``line`` where."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def host_of(job: Job, factory: cst.FunctionDef) -> Host:
    """The file of the kernel as one that calls its factory."""

    def shared(name: str) -> bool:
        return job.users is not None and job.users.may_take(name)

    name, kernel = factory.name, job.located.node
    return Host(job.file.index, job.file.names, name.value, job.change, shared, name, kernel)


def followers_of(job: Job, factory: cst.FunctionDef) -> tuple[Follower, ...]:
    """The other files that use a factory. Raises :class:`Blocked` where that is not clear."""
    if job.users is None or not isinstance(job.file.index.parent(factory), cst.Module):
        return ()
    found = job.users.of(factory.name.value)
    for user in found:
        if not user.names:
            name = f"`{factory.name.value}`"
            text = f"line {user.line} of {user.shown} may use {name}: the file imports or runs modules by string names"
            raise Blocked("TL915", factory, text)
    return tuple(Follower(user.shown, user.line, user.names, user.cell) for user in found)


def follow(text: str, path: str, names: Sequence[str], promise: Promise) -> tuple[str, list[Change]]:
    """The text of a file that calls a factory by ``names``, after the factory has changed, and what was edited.

    Raises :class:`Unable` where a call cannot follow with certainty.
    """
    changes: list[Change] = []
    try:
        index = Index.parse(text)
        for name in names:
            index = _followed(index, path, name, promise, changes)
    except SourceError as error:
        raise Unable(error.line or 1, str(error)) from None
    except EditError as error:
        raise Unable(1, f"cannot rewrite a call of `{promise.factory}`: {error}") from None
    return relayout(text, index.module.code, path), changes


def _followed(index: Index, path: str, name: str, promise: Promise, changes: list[Change]) -> Index:
    plain = index
    if "." in name:
        plain = _with(index, [n for n in nodes_of(index.module, cst.Attribute) if dotted_text(n) == name])
        name = name.replace(".", DOT)
    edits = Edits(plain)
    noted: list[tuple[str, cst.CSTNode, str]] = []
    users = Users(path)
    host = Host(plain, Names(plain), name, lambda *change: noted.append(change), users.may_take)
    try:
        if promise.arity:
            drop_arguments(host, edits, dict(promise.arguments), promise.arity)
        if promise.parameters:
            drop_parameters(host, edits, promise)
    except Blocked as blocked:
        raise Unable(plain.first_line(blocked.node) or 1, blocked.message) from None
    changes += [Change(code, plain.first_line(node) or 1, text.replace(DOT, ".")) for code, node, text in noted]
    done = edits.apply(plain.module)
    if DOT not in name:
        return Index.of(done)
    back = Index.of(done)
    return _with(back, [n for n in names_in(done) if n.value == name])


def drop_parameters(host: Host, edits: Edits, promise: Promise) -> None:
    """Take parameters of the factory out of its calls. Raises :class:`Blocked` where an argument cannot be told."""
    module = host.index.module
    made = [c for c in calls_in(module) if isinstance(c.func, cst.Name) and c.func.value == host.factory]
    own = {id(call.func) for call in made}
    for use in names_in(module):
        foreign = use.value == host.factory and id(use) not in own
        if foreign and not isinstance(host.index.parent(use), (cst.ImportAlias, cst.AsName)):
            raise Blocked("TL915", use, f"this use of `{host.factory}` may hide a call")
    places = [place for place, name in enumerate(promise.order) if name in promise.parameters]
    for call in made:
        if any(arg.star for arg in call.args):
            raise Blocked("TL915", call, "cannot match the arguments of this call with the parameters")
        positional = [arg for arg in call.args if arg.keyword is None]
        gone = [positional[place] for place in places if place < len(positional)]
        gone += [arg for arg in call.args if arg.keyword is not None and arg.keyword.value in promise.parameters]
        for arg in gone:
            edits.remove(arg)
            host.change("TL315", call, f"removed an argument of `{host.factory}`")


def _with(index: Index, nodes: Sequence[cst.CSTNode]) -> Index:
    """``module.name`` as one name, or such names as attributes again."""
    edits = Edits(index)
    for node in nodes:
        if isinstance(node, cst.Attribute):
            edits.replace(node, cst.Name(dotted_text(node).replace(".", DOT), node.lpar, node.rpar))
        elif isinstance(node, cst.Name):
            new = cst.parse_expression(node.value.replace(DOT, "."))
            edits.replace(node, new.with_changes(lpar=node.lpar, rpar=node.rpar))
    return index.including(edits.apply(index.module), {}) if edits else index
