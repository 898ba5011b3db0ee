"""The catalogues against an installed TileLang-Ascend: names, parameters, their order, kinds and defaults.

``TL2NPU_TILELANG_PYTHON`` names an interpreter that has it, with ``PYTHONPATH`` as its ``set_env.sh`` sets it; without
it nothing is tested here. Which branch is installed decides which catalogue is held against it. torch has to be there;
torch_npu, CANN and the code generator need not: as for ``--backend compile`` there are stand-ins for them.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tl2npu.backends import children
from tl2npu.dialects.ascend import OPERATORS as ASCEND
from tl2npu.dialects.catalogue import Operator
from tl2npu.dialects.compiler import JUNE_2026
from tl2npu.dialects.npuir import OPERATORS as NPUIR
from tl2npu.dialects.pass_configs import NPUIR_MEMBERS, STRING_OF

PYTHON = os.environ.get("TL2NPU_TILELANG_PYTHON", "")

CHILDREN = Path(children.__file__).with_name("child")

ASK = """
import inspect, json, pathlib, sys, types
asked = json.loads(sys.stdin.read())
sys.path.append(asked["children"])
import no_device, npuir
no_device.install()
stand_in = types.ModuleType("cython_wrapper")
stand_in.CythonKernelWrapper = object
sys.modules["cython_wrapper"] = stand_in
tilelang = npuir.imported(no_device, lambda note: None)
import tilelang.language as T

KINDS = {"POSITIONAL_ONLY": "positional", "POSITIONAL_OR_KEYWORD": "positional", "KEYWORD_ONLY": "keyword",
         "VAR_POSITIONAL": "variadic", "VAR_KEYWORD": "keywords"}

def about(value):
    try:
        found = inspect.signature(value).parameters.values() if not isinstance(value, type) else None
    except (TypeError, ValueError):
        found = None
    if found is None:
        return None
    return [[p.name, KINDS[p.kind.name], None if p.default is p.empty else repr(p.default)] for p in found]

folder = pathlib.Path(tilelang.__file__).parent / "language"
branch = "npuir" if (folder / "customize_npuir.py").is_file() else "ascend"
answer = {}
for name in asked["operators"][branch]:
    value = T
    for part in name.split("."):
        value = getattr(value, part, None)
    answer[name] = {"there": value is not None, "params": about(value)}
exported = [n for n, v in vars(T).items() if not n.startswith("_") and not isinstance(v, type)
            and getattr(v, "__module__", "").startswith("tilelang.")]
tile = [f"tile.{n}" for n, v in vars(getattr(T, "tile", None) or types.SimpleNamespace()).items()
        if inspect.isfunction(v) and n[0] != "_" and n != "deprecated" and v.__module__ == T.tile.__name__]
print()
keys = {name: key.value for name, key in tilelang.PassConfigKey.__members__.items()}
print(json.dumps({"branch": branch, "operators": answer, "exported": exported + tile, "keys": keys}))
"""


@cache
def installed() -> Mapping[str, Any]:
    if not PYTHON:
        pytest.skip("TL2NPU_TILELANG_PYTHON names no interpreter with TileLang-Ascend")
    asked = {"children": str(CHILDREN), "operators": {"ascend": list(ASCEND), "npuir": list(NPUIR)}}
    done = subprocess.run([PYTHON, "-c", ASK], input=json.dumps(asked), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(found, dict)
    return found


def pairs() -> Iterator[tuple[Operator, Mapping[str, Any]]]:
    catalogue = NPUIR if installed()["branch"] == "npuir" else ASCEND
    for name, real in installed()["operators"].items():
        yield catalogue[name], real


def words(rows: list[list[Any]]) -> list[tuple[str, str]]:
    return [(name, kind) for name, kind, _ in rows if kind != "keywords"]


def expected(row: Operator) -> list[list[Any]]:
    lacking = JUNE_2026.lacks(row.name) if installed()["branch"] == "ascend" else None
    return [[p.name, p.kind, p.default] for p in row.params if p.name != lacking]


def bundled(ours: list[list[Any]], real: list[list[Any]]) -> list[list[Any]]:
    """The catalogue names what a function of branch npuir takes as ``*args``; here it is one parameter again."""
    if [name for name, kind, _ in real if kind != "keyword"] != ["args"] or installed()["branch"] == "ascend":
        return ours
    return [["args", "variadic", None], *(one for one in ours if one[1] == "keyword")]


def test_every_name_exists() -> None:
    assert [row.name for row, real in pairs() if not real["there"]] == []


def test_every_exported_name_is_known() -> None:
    """The functions of the branch's own modules; of TVM's those are listed that kernels use."""
    known = {row.name for row, _ in pairs()} | {row.name.split(".")[0] for row, _ in pairs()}
    assert sorted(set(installed()["exported"]) - known) == []


def test_keys_of_pass_configs() -> None:
    if installed()["branch"] == "npuir":
        assert set(installed()["keys"]) == NPUIR_MEMBERS
    else:
        assert installed()["keys"] == dict(STRING_OF)


def test_parameters_and_their_order() -> None:
    found = {
        row.name: (words(expected(row)), words(real["params"]))
        for row, real in pairs()
        if real["params"] is not None and words(bundled(expected(row), real["params"])) != words(real["params"])
    }
    assert found == {}


def test_defaults() -> None:
    """Where the function looks whether an argument was given (reduce), the catalogue has what it takes instead."""
    found = {}
    for row, real in pairs():
        if real["params"] is None:
            continue
        # npuir_transpose has `permutation=Union[list, tuple]`, which is no list: it has to be given
        values = {name: default for name, _, default in real["params"] if not (default or "").startswith("typing.")}
        for name, _, default in expected(row):
            if name in values and not same(default, values[name]) and "<object object" not in (values[name] or ""):
                found[f"{row.name}({name})"] = (default, values[name])
    assert found == {}


def same(told: str | None, real: str | None) -> bool:
    """Equal source texts, or equal values where both are literals."""
    if told is None or real is None:
        return told is real
    try:
        return bool(eval(told, {}) == eval(real, {}))
    except Exception:
        return told.split(".")[-1] in real
