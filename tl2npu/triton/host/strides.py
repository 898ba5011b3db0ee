"""``*x.stride()`` among the arguments of a launch: which parameters of the kernel are the strides of which tensor."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence

from tl2npu.triton.host.torch_names import annotated

_MOST = 512
"""Ways to share parameters among tensors that are looked at."""


def spread(
    call: ast.Call,
    kernel: ast.FunctionDef,
    known: Mapping[str, int],
    least: Mapping[str, int],
    dicts: Mapping[str, set[str]],
) -> Mapping[str, int]:
    """The ranks of ``*x.stride()`` among the arguments of a launch: the only ones with which each tensor gets the
    parameters that the kernel multiplies into its addresses. It may leave the last ones out, whose value is 1; if that
    leaves several ranks, those that are all the same.

    ``least``: by the axes that are asked for; ``dicts``: the keys of dictionaries.
    """
    args: list[str | None] = [_strided(arg.value) if isinstance(arg, ast.Starred) else None for arg in call.args]
    stars = [name for arg, name in zip(call.args, args, strict=True) if isinstance(arg, ast.Starred)]
    unpacked = [ast.unparse(word.value) for word in call.keywords if word.arg is None]
    if not stars or None in stars or not dicts.keys() >= set(unpacked):
        return {}
    given = {word.arg for word in call.keywords if word.arg}.union(*(dicts[name] for name in unpacked))
    params = [arg.arg for arg in kernel.args.args]
    optional = given | set(params[len(params) - len(kernel.args.defaults) :])
    if kernel.decorator_list[1:]:  # `triton.autotune` and `triton.heuristics` give constants
        optional |= {arg.arg for arg in kernel.args.args if annotated(arg, "constexpr")}
    first = itertools.takewhile(lambda arg: not isinstance(arg, ast.Starred), call.args)
    passed = dict(zip(map(ast.unparse, first), params, strict=False))
    passed |= {ast.unparse(word.value): word.arg for word in call.keywords if word.arg is not None}
    owners = _owners(kernel, set(passed.values()))

    def fits(number: int, at: int, ranks: Mapping[str, int], unused: int) -> Iterator[tuple[int, Mapping[str, int]]]:
        """The ranks with which arguments from a number on fill the parameters from ``at`` on, and for how many tensors
        the kernel does not use the first stride."""
        if number == len(args):
            if optional.issuperset(params[at:]):
                yield unused, {name: rank for name, rank in ranks.items() if name not in known}
            return
        name, left = args[number], len(params) - at - (len(args) - number - 1)
        if name is None:
            yield from fits(number + 1, at + 1, ranks, unused) if left > 0 and params[at] not in given else ()
            return
        for rank in [ranks[name]] if name in ranks else range(max(least.get(name, 0), 1), left + 1):
            of = passed.get(name)
            if rank > left or any(p in given or not owners.get(p, {of}) & {of, None} for p in params[at : at + rank]):
                return
            yield from fits(number + 1, at + rank, {**ranks, name: rank}, unused + (params[at] not in owners))

    found = list(itertools.islice(fits(0, 0, known, 0), _MOST))
    likely = [ranks for unused, ranks in found if unused == min(found, key=lambda item: item[0])[0]]
    same = [ranks for ranks in likely if len(set(ranks.values())) == 1]
    return next(iter(likely if len(likely) == 1 else same), {})


def _strided(node: ast.expr) -> str | None:
    """``x`` of ``x.stride()`` and ``x.size()``."""
    func = node.func if isinstance(node, ast.Call) and not node.args else None
    known = isinstance(func, ast.Attribute) and func.attr in ("stride", "size") and isinstance(func.value, ast.Name)
    return func.value.id if known else None  # type: ignore[union-attr]


def _owners(kernel: ast.FunctionDef, pointers: Collection[str]) -> dict[str, set[str | None]]:
    """For each parameter the pointers into whose addresses the kernel multiplies it."""
    values: dict[str, list[ast.expr]] = {}
    addresses: list[Sequence[ast.expr]] = []
    for node in ast.walk(kernel):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AugAssign(target=ast.Name(id=name)):
                values.setdefault(name, []).append(node.value)
            case ast.Call(func=ast.Attribute(attr="load" | "store" | "atomic_add" | "atomic_max"), args=[first, *_]):
                addresses.append([first])
            case ast.Call(func=ast.Attribute(attr="make_block_ptr")):
                addresses.append([*node.args, *(word.value for word in node.keywords)])

    def inside(node: ast.AST, seen: set[str]) -> set[str]:
        """The names that an address is made of; what is loaded has addresses of its own."""
        if isinstance(node, ast.Name) and node.id not in seen:
            seen.add(node.id)
            for value in values.get(node.id, ()):
                inside(value, seen)
        elif not (isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".load")):
            for child in ast.iter_child_nodes(node):
                inside(child, seen)
        return seen

    owners: dict[str, set[str | None]] = {}
    for parts in addresses:
        seen = set[str]()
        for part in parts:
            inside(part, seen)
        for name in seen - set(pointers):
            owners.setdefault(name, set()).update(seen & set(pointers))
    return owners
