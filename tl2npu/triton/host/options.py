"""Keywords of a launch that no kernel takes: options of the compiler."""

from __future__ import annotations

import ast
from collections.abc import Collection

OPTIONS = frozenset(
    {
        "num_warps",
        "num_stages",
        "num_ctas",
        "maxnreg",
        "enable_fp_fusion",
        "warp_size",
        "waves_per_eu",
        "allow_flush_denorm",
        "debug",
    }
)


def item(of: ast.expr, key: str, default: ast.expr | None = None) -> ast.keyword:
    """What a launch passes for a parameter by ``**of``; ``default``: where that may lack it."""
    found: ast.expr = ast.Subscript(of, ast.Constant(key), ast.Load())
    if default is not None:
        found = ast.Call(ast.Attribute(of, "get", ast.Load()), [ast.Constant(key), default], [])
    return ast.keyword(key, ast.copy_location(ast.fix_missing_locations(found), of))


def may_only_have_options(node: ast.expr, function: ast.FunctionDef | None, params: Collection[str]) -> bool:
    """True for a dictionary, whichever it is, that has nothing for a parameter of the kernel.

    What a keyword is that the kernel does not take, is for the compiler: Triton refuses those that this has not either.
    """
    keys: list[ast.expr | None] = []
    values: list[ast.expr] = [node]
    for value in values:  # it grows
        if isinstance(value, ast.IfExp):
            values += [value.body, value.orelse]
        elif isinstance(value, ast.Dict):
            keys += value.keys
        elif isinstance(value, ast.Name) and value is node:
            stored = _stored(function, value.id)
            values += [one for key, one in stored if key is None]
            keys += [key for key, _ in stored if key is not None] if stored else [None]
        else:
            return False
    texts = [key.value if isinstance(key, ast.Constant) else None for key in keys]
    return all(isinstance(text, str) and text not in params for text in texts)


def _stored(function: ast.FunctionDef | None, name: str) -> list[tuple[ast.expr | None, ast.expr]]:
    """What a function gives a name, and elements of what it has, each with its key; nothing where it does more with
    it than to unpack it."""
    found: list[tuple[ast.expr | None, ast.expr]] = []
    uses = 0
    for item in ast.walk(function) if function is not None else ():
        if isinstance(item, ast.Name):
            uses += item.id == name
        elif isinstance(item, ast.keyword) and item.arg is None:
            uses -= ast.unparse(item.value) == name
        elif isinstance(item, ast.Assign):
            for target in item.targets:
                if isinstance(target, ast.Name) and target.id == name:
                    found.append((None, item.value))
                elif isinstance(target, ast.Subscript) and ast.unparse(target.value) == name:
                    found.append((target.slice, item.value))
    return found if uses == len(found) else []
