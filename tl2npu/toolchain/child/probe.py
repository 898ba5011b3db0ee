"""Stand-alone: tells what an interpreter has, as one JSON object on the last line. It imports nothing of tl2npu.

``probe.py packages`` looks without importing; ``probe.py tilelang`` and ``probe.py device`` import, which may fail,
hang or kill the process.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import sys
import types
from pathlib import Path
from typing import Any


def packages() -> dict[str, Any]:
    """Versions and folders of the packages that are installed."""
    found: dict[str, Any] = {"python": ".".join(map(str, sys.version_info[:3])), "executable": sys.executable}
    for name, project in (("torch", "torch"), ("torch_npu", "torch-npu"), ("tilelang", "tilelang")):
        found[name] = None
        spec = importlib.util.find_spec(name)
        if spec is None:
            continue
        places = list(spec.submodule_search_locations or [])
        folder = (Path(places[0]) if places else Path(spec.origin or "").parent).resolve()
        found[name] = {"version": _version(project, folder), "folder": str(folder)}
    return found


def _version(project: str, folder: Path) -> str:
    """What a file VERSION in the package or in the checkout around it says, else what was installed."""
    for file in (folder / "VERSION", folder.parent / "VERSION"):
        if file.is_file():
            return file.read_text(encoding="utf-8").strip()
    try:
        return importlib.metadata.version(project)
    except importlib.metadata.PackageNotFoundError:
        return ""


def tilelang() -> dict[str, Any]:
    """What ``import tilelang`` comes to; without its Cython adapter it compiles kernels, but launches none."""
    launches = True
    try:
        importlib.import_module("tilelang")
    except ModuleNotFoundError as error:
        if error.name != "cython_wrapper":
            raise
        launches = False
        for name in [n for n in sys.modules if n.split(".")[0] == "tilelang"]:
            del sys.modules[name]
        stand_in = types.ModuleType("cython_wrapper")
        stand_in.CythonKernelWrapper = object  # type: ignore[attr-defined]
        sys.modules["cython_wrapper"] = stand_in
        importlib.import_module("tilelang")
    return {"launches": launches}


def device() -> dict[str, Any]:
    """The device as torch_npu tells it, with its cores where it knows them."""
    torch: Any = importlib.import_module("torch")
    importlib.import_module("torch_npu")
    if not torch.npu.is_available():
        return {"name": None, "count": 0}
    seen = torch.npu.get_device_properties(torch.npu.current_device())
    return {
        "name": str(seen.name),
        "count": int(torch.npu.device_count()),
        "cube": getattr(seen, "cube_core_num", None),
        "vector": getattr(seen, "vector_core_num", None),
    }


if __name__ == "__main__":
    del sys.path[0]  # the folder of this script
    answer = {"packages": packages, "tilelang": tilelang, "device": device}[sys.argv[1]]()
    sys.stdout.flush()
    print("\n" + json.dumps(answer, default=str), flush=True)
    os._exit(0)  # libraries of devices may hang at the end of the process
