"""TL625: what makes the configurations of a tuner is called by TileLang-Ascend as it was on the GPU."""

from __future__ import annotations

import ast

import pytest

from tests.passes.gpu.support import gpu_file, migrated, result_of

PARAMS = 'X: T.Tensor((N, 64), "float32"), Y: T.Tensor((N, 64), "float32")'
BODY = """x = T.alloc_fragment((block, 64), "float32")
T.copy(X[bx * block, 0], x)
T.copy(x, Y[bx * block, 0])
"""
LISTED = '[{"block": block} for block in (16, 32)]'


def tuned(given: str, head: str) -> str:
    file = gpu_file(
        PARAMS,
        BODY,
        jit=f"{head}@tilelang.autotune(configs={given})\n@tilelang.jit",
        launch="T.Kernel(N // block) as bx",
    )
    return file.replace("def factory():", "def factory(N, M, K, block=16):")


def made(text: str) -> object:
    """What the configurations of the file are for ``factory(64, 2, K=3)``, asked for as TileLang-Ascend asks."""
    tree = ast.parse(text)
    (given,) = (item.value for item in ast.walk(tree) if isinstance(item, ast.keyword) and item.arg == "configs")
    head = [item for item in tree.body if isinstance(item, ast.FunctionDef) and item.name == "get"]
    space: dict[str, object] = {}
    shown = "\n".join(map(ast.unparse, head))
    exec(f"{shown}\nfound = {ast.unparse(given)}\n", space)  # the text is this test's own
    found = space["found"]
    return found((64, 2), (("K", 3),)) if callable(found) else found


@pytest.mark.parametrize(
    ("given", "head"),
    [
        ("get", f"def get(N, M, K):\n    return {LISTED} if (N, M, K) == (64, 2, 3) else []\n\n\n"),
        (
            "get",
            f"def get(*args, **kwargs):\n    return {LISTED} if (args, kwargs) == ((64, 2), {{'K': 3}}) else []\n\n\n",
        ),
        (f"lambda N, M, K: {LISTED} if (N, M, K) == (64, 2, 3) else []", ""),
    ],
)
def test_the_function_gets_the_arguments_of_the_call(given: str, head: str) -> None:
    new = migrated(tuned(given, head))
    assert "lambda args, kwargs: " in new
    assert made(new) == [{"block": 16}, {"block": 32}]
    assert not result_of(new).changed


@pytest.mark.parametrize(
    ("given", "head"),
    [
        ("get", f"def get(args, kwargs):\n    return {LISTED}\n\n\n"),  # written for two tuples, or for two arguments
        ("get", f"def get(args, kwargs=None, more=0):\n    return {LISTED}\n\n\n"),
        ("get()", f"def get():\n    return {LISTED}\n\n\n"),
        (LISTED, ""),
    ],
)
def test_others_stay(given: str, head: str) -> None:
    assert f"configs={given})" in migrated(tuned(given, head))


@pytest.mark.parametrize(
    ("given", "head"),
    [
        ("get", 'def get(N, M, K):\n    return [{"block": 32, "pass_configs": {KEY: True}}]\n\n\n'),
        ("get()", "def get():\n    return [{'block': 32, 'pass_configs': {KEY: on}} for on in (True,)]\n\n\n"),
        ('[{"pass_configs": {KEY: True}, "block": 32}]', ""),
    ],
)
def test_pass_configs_of_a_configuration_go(given: str, head: str) -> None:
    """TileLang-Ascend's tuner would pass them to the factory."""
    new = migrated(tuned(given, "KEY = tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED\n\n\n" + head))
    assert "pass_configs'" not in new.replace('"', "'")
    assert made(new) == [{"block": 32}]
