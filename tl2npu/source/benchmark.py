"""Files of a benchmark by the convention of KernelBench: a model and its inputs, which a harness runs.

Such a file has a class ``ModelNew`` or ``Model``, functions ``get_inputs`` and mostly ``get_init_inputs``, and calls
nothing (ScalingIntelligence/KernelBench, ``src/eval.py``).
"""

from __future__ import annotations

import ast

MODELS = ("ModelNew", "Model")


def model_of(tree: ast.Module) -> str | None:
    """The class to run; None for a file that is no such benchmark, or that runs something itself."""
    classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    name = next((name for name in MODELS if name in classes), None)
    defines = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    own = [node for stmt in tree.body if not isinstance(stmt, defines) for node in ast.walk(stmt)]
    called = {node.func.id for node in own if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return name if "get_inputs" in functions and not called & (classes | functions) else None
