"""``*x.stride()`` among the arguments of a launch: which parameters of the kernel are the strides of which tensor."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping, Sequence

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
    args = [_strided(arg.value) if isinstance(arg, ast.Starred) else None for arg in call.args]
    stars = [name for arg, name in zip(call.args, args, strict=True) if isinstance(arg, ast.Starred)]
    sure, known = known, {**known, **{name: count for name, count in filter(None, args) if count}}
    unpacked = [ast.unparse(word.value) for word in call.keywords if word.arg is None]
    if not stars or None in stars or not dicts.keys() >= set(unpacked):
        return {}
    given = {word.arg for word in call.keywords if word.arg}.union(*(dicts[name] for name in unpacked))
    params = [arg.arg for arg in kernel.args.args]
    optional = given | set(params[len(params) - len(kernel.args.defaults) :])
    if kernel.decorator_list[1:]:  # `triton.autotune` and `triton.heuristics` give constants
        optional |= {arg.arg for arg in kernel.args.args if annotated(arg, "constexpr")}
    passed = {ast.unparse(word.value): word.arg for word in call.keywords if word.arg is not None}
    beside = _addresses(kernel)

    def fits(
        number: int, at: int, ranks: Mapping[str, int], passed: Mapping[str, str], unused: int
    ) -> Iterator[tuple[int, Mapping[str, int]]]:
        """The ranks with which arguments from a number on fill the parameters from ``at`` on, and for how many tensors
        the kernel does not use the first stride. ``passed``: what is passed for which parameter, as far as it is known.
        """
        if number == len(args):
            if optional.issuperset(params[at:]):
                yield unused, {name: rank for name, rank in ranks.items() if name not in sure}
            return
        star, left = args[number], len(params) - at - (len(args) - number - 1)
        if star is None:
            if left > 0 and params[at] not in given:
                more = {ast.unparse(call.args[number]): params[at]}
                yield from fits(number + 1, at + 1, ranks, {**more, **passed}, unused)
            return
        name = star[0]
        for rank in [ranks[name]] if name in ranks else range(max(least.get(name, 0), 1), left + 1):
            span, of = params[at : at + rank], passed.get(name)
            if rank > left or any(p in given or (of and p in beside and of not in beside[p]) for p in span):
                return
            yield from fits(number + 1, at + rank, {**ranks, name: rank}, passed, unused + (params[at] not in beside))

    found = list(itertools.islice(fits(0, 0, known, passed, 0), _MOST))
    likely = [ranks for unused, ranks in found if unused == min(found, key=lambda item: item[0])[0]]
    same = [ranks for ranks in likely if len(set(ranks.values())) == 1]
    return next(iter(likely if len(likely) == 1 else same), {})


def whole(
    call: ast.Call, kernel: ast.FunctionDef, dicts: Mapping[str, Mapping[str, ast.expr]]
) -> Iterator[tuple[str, int]]:
    """Tensors of which a launch passes all strides, or all extents, for one parameter, and how many the kernel takes of
    it at least. ``dicts``: what dictionaries hold that it unpacks."""
    given = dict(zip((arg.arg for arg in kernel.args.args), call.args, strict=False))
    for word in call.keywords:
        given |= dicts.get(ast.unparse(word.value), {}) if word.arg is None else {word.arg: word.value}
    taken: dict[str, int] = {}
    for node in ast.walk(kernel):
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int() as place)):
                taken[name] = max(taken.get(name, 0), place + 1)
            case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Name(id=name)):
                taken[name] = max(taken.get(name, 0), len(parts))
    for param, value in given.items():
        arms = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
        for tensor, _ in filter(None, map(_strided, arms)):
            if param in taken:
                yield tensor, taken[param]


def _strided(node: ast.expr) -> tuple[str, int] | None:
    """``x`` of ``x.stride()`` and ``x.size()``, and 0; of ``x.stride() if test else (0, 0)``, and 2."""
    if isinstance(node, ast.IfExp):
        arms = [node.body, node.orelse]
        others = [len(arm.elts) for arm in arms if isinstance(arm, ast.Tuple)]
        found = next(filter(None, map(_strided, arms)), None)
        return (found[0], others[0]) if found is not None and others else None
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="stride" | "size"), args=[]):
            return name, 0
        case ast.Attribute(value=ast.Name(id=name), attr="shape"):
            return name, 0
    return None


def _addresses(kernel: ast.FunctionDef) -> dict[str, set[str]]:
    """For each name in an address of a kernel the names that are in such an address with it."""
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

    beside: dict[str, set[str]] = {}
    for parts in addresses:
        seen = set[str]()
        for part in parts:
            inside(part, seen)
        for name in seen:
            beside.setdefault(name, set()).update(seen)
    return beside
