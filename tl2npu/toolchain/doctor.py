"""``tl2npu doctor``: everything that the backends of ``verify`` may need, and which of them can run.

The commands that mend things are those of tilelang-ascend's own README ("Installation"), ``install_ascend.sh``,
``requirements.txt`` and ``set_env.sh`` (95acbd7f; branch npuir: README and ``install_npuir.sh``).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tl2npu.devices import DEVICES
from tl2npu.source.git import commit
from tl2npu.toolchain import cann as kits
from tl2npu.toolchain.cann import Cann, tool
from tl2npu.toolchain.findings import Finding, Machine

_PROBE = Path(__file__).with_name("child") / "probe.py"
_SECONDS = {"packages": 30.0, "tilelang": 180.0, "device": 120.0}
"""For each question; the first import of TileLang compiles its Cython adapter."""


class ProbeError(Exception):
    """An answer that did not come; ``str()`` is one line that says why."""


def ask(what: str, python: str | None, environment: Mapping[str, str]) -> dict[str, Any]:
    """Ask an interpreter (None: this one) for ``packages``, ``tilelang`` or ``device``. Raises :class:`ProbeError`."""
    try:
        child = subprocess.Popen(
            [python or sys.executable, str(_PROBE), what],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
        )
    except OSError as error:
        raise ProbeError(f"{python} cannot be started: {error.strerror}") from None
    try:
        data, _ = child.communicate(timeout=_SECONDS[what])
    except subprocess.TimeoutExpired:
        raise ProbeError(f"no answer within {_SECONDS[what]:g} seconds") from None
    finally:
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(child.pid, signal.SIGKILL)
            else:
                child.kill()
        child.wait()
    lines = [line for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
    last = lines[-1].strip() if lines else ""
    if child.returncode < 0:
        raise ProbeError(f"the process died by {signal.Signals(-child.returncode).name}")
    with suppress(ValueError):
        answer = json.loads(last)
        if isinstance(answer, dict):
            return answer
    raise ProbeError(last or f"exit code {child.returncode}")


_CLONE = "git clone --recursive https://github.com/tile-ai/tilelang-ascend.git; in it `bash install_ascend.sh`, then"
_INSTALL = f"{_CLONE} `source set_env.sh`"
_CANN = "install CANN 8.3.RC1 or later, then `source {folder}/ascend-toolkit/set_env.sh`"
_ADAPTER = "kernels can be compiled, not launched"
_TORCH = "torch --index-url https://download.pytorch.org/whl/cpu"  # the other one is several times as large
_COMPILES = ("python", "torch", "tilelang", "import tilelang")
_LAUNCHES = (*_COMPILES, "Cython adapter", "torch_npu", "CANN", "bisheng", "TL_ROOT", "ACL_OP_INIT_MODE")
_NEEDS: dict[str, tuple[str, ...]] = {
    "sim": (),
    "compile": _COMPILES,
    "npu": (*_LAUNCHES, "device"),
    "camodel": (*_LAUNCHES, "camodel"),
}


def examine(python: str | None = None, environment: Mapping[str, str] | None = None) -> Machine:
    """Look at the machine and at an interpreter (None: this one); ``environment``: variables, those of this process."""
    env = dict(os.environ if environment is None else environment)
    try:
        found = ask("packages", python, env)
    except ProbeError as error:
        gone = Finding("python", python, "give another with `--python`", str(error))
        lacks: dict[str, tuple[str, ...]] = {name: ("python",) if needs else () for name, needs in _NEEDS.items()}
        return Machine(python or sys.executable, {"python": gone}, lacks)
    package = found["tilelang"]
    branch = _branch(Path(package["folder"])) if package else ""
    kit = kits.find(env)
    rows = [
        *_packages(found, branch, python, env),
        *_tool_kit(kit, env),
        *_variables(found, kit, env),
        *_devices(found, python, env),
    ]
    findings = {row.name: row for row in rows}
    lacks = {name: tuple(need for need in needs if not findings[need].usable) for name, needs in _NEEDS.items()}
    if branch == "npuir":
        lacks |= {name: ("tilelang", *lacks[name]) for name in ("npu", "camodel")}
    targets = {"npuir": ("npuir",), "ascendc_pto": ("ascendc", "pto")}.get(branch, ())
    return Machine(found["executable"], findings, lacks, targets)


def _branch(folder: Path) -> str:
    """Which TileLang a package is, by the modules of its language: ``ascendc_pto``, ``npuir``, or empty for another."""
    language = folder / "language"
    if (language / "ascend_tile.py").is_file():
        return "ascendc_pto"
    return "npuir" if (language / "customize_npuir.py").is_file() else ""


def _packages(found: dict[str, Any], branch: str, python: str | None, env: dict[str, str]) -> Iterator[Finding]:
    old = tuple(map(int, found["python"].split("."))) < (3, 10)
    wrong = "TileLang-Ascend needs Python 3.10 or later" if old else ""
    yield Finding(
        "python", f"{found['python']} ({found['executable']})", "give another with `--python`" if old else "", wrong
    )
    for name, project in (("torch", _TORCH), ("torch_npu", "torch-npu")):
        package = found[name]
        version = package and (package["version"] or "of unknown version")
        yield Finding(name, version, "" if package else f"{found['executable']} -m pip install {project}")
    package = found["tilelang"]
    if package is None:
        yield Finding("tilelang", None, _INSTALL)
        yield Finding("import tilelang", None)
        yield Finding("Cython adapter", None)
        return
    folder = Path(package["folder"])
    commit = _commit(folder)
    value = f"{package['version']} in {folder}" + (f", branch {branch}" if branch else "")
    value += f", commit {commit}" if commit else ""
    other = "" if branch else "this is TileLang for GPUs, not TileLang-Ascend"
    yield Finding("tilelang", value, "" if branch else _INSTALL, other)
    root = folder.parent
    try:
        answer = ask("tilelang", python, env)
    except ProbeError as error:
        module = "No module named" in str(error) or "Cython is not installed" in str(error)
        listed = module and (root / "requirements.txt").is_file()
        mend = f"{found['executable']} -m pip install -r {root}/requirements.txt" if listed else _INSTALL
        yield Finding("import tilelang", "fails", mend, str(error))
        yield Finding("Cython adapter", None)
        return
    yield Finding("import tilelang", "works")
    mend = "" if answer["launches"] else _INSTALL
    yield Finding(
        "Cython adapter", "works" if answer["launches"] else None, mend, note="" if answer["launches"] else _ADAPTER
    )


def _commit(folder: Path) -> str:
    """The commit of the checkout that a package is part of, empty if it is part of none."""
    return commit(folder.parent) if (folder.parent / ".git").exists() else ""


def _tool_kit(kit: Cann | None, env: dict[str, str]) -> Iterator[Finding]:
    enter = _CANN if kit is None else f"source {kit.setup}" if kit.setup else _CANN
    if kit is None:
        named = env.get("ASCEND_HOME_PATH") or env.get("ASCEND_HOME")
        wrong = f"ASCEND_HOME_PATH or ASCEND_HOME names {named}, which is not a folder" if named else ""
        yield Finding("CANN", named, _CANN, wrong)
    else:
        yield Finding("CANN", f"{kit.version or 'of unknown version'} in {kit.home}")
    for name in ("bisheng", "msprof", "mssanitizer", "npu-smi"):
        path = tool(name, env)
        hidden = kits.off_path(name, kit) if path is None and kit is not None else None
        note = f"{hidden} is not on PATH" if hidden else ""
        help = enter if kit is not None else "comes with CANN"
        help = "install the NPU driver and firmware" if name == "npu-smi" else help
        yield Finding(name, path, "" if path else help, note=note)
    linked = kits.simulators(kit) if kit is not None else {}
    folders = ", ".join(f"{'A2 and A3' if name == 'A2' else name}: {folder}" for name, folder in linked.items())
    yield Finding("camodel", folders or None, "" if linked else "install the simulator of the CANN toolkit")


def _variables(found: dict[str, Any], kit: Cann | None, env: dict[str, str]) -> Iterator[Finding]:
    for name in ("ASCEND_HOME_PATH", "ASCEND_HOME"):
        if name in env:
            yield Finding(name, env[name])
    if not {"ASCEND_HOME_PATH", "ASCEND_HOME"} & env.keys():
        note = f"tilelang-ascend falls back to {kit.home}" if kit is not None else ""
        yield Finding("ASCEND_HOME_PATH", None, "" if kit else "set by the set_env.sh of CANN", note=note)
    folder = Path(found["tilelang"]["folder"]) if found["tilelang"] else None
    root = _root(folder, env)
    if "TL_ROOT" in env and root is None:
        yield Finding("TL_ROOT", env["TL_ROOT"], "unset TL_ROOT, or `source set_env.sh`", "there is no 3rdparty in it")
    elif root is None:
        yield Finding("TL_ROOT", None, f"source {folder.parent}/set_env.sh" if folder else _INSTALL)
    else:
        yield Finding(
            "TL_ROOT", str(root), note="" if "TL_ROOT" in env else "not set; the package's own folder is used"
        )
    for name, path in (("PTO-ISA headers", "pto-isa"), ("catlass headers", "catlass")):
        place = root / "3rdparty" / path / "include" if root is not None else None
        there = place is not None and place.is_dir()
        mend = f"git -C {root} submodule update --init --recursive" if root is not None else _INSTALL
        yield Finding(name, str(place) if there else None, "" if there else mend)
    mode = env.get("ACL_OP_INIT_MODE")
    wrong = "must be 1: torch_npu loads a second TVM otherwise" if mode not in (None, "1") else ""
    yield Finding("ACL_OP_INIT_MODE", mode, "" if mode == "1" else "export ACL_OP_INIT_MODE=1", wrong)


def _root(folder: Path | None, env: Mapping[str, str]) -> Path | None:
    """The folder with ``3rdparty`` as ``libgen.py`` finds it: TL_ROOT, the package, or the folder around it."""
    named = env.get("TL_ROOT")
    places = [Path(named)] if named else [folder, folder.parent] if folder is not None else []
    return next((place for place in places if (place / "3rdparty").exists()), None)


def _devices(found: dict[str, Any], python: str | None, env: dict[str, str]) -> Iterator[Finding]:
    path = tool("npu-smi", env)
    listed = kits.chips(path) if path is not None else {}
    seen: dict[str, Any] = {}
    wrong = ""
    if found["torch"] and found["torch_npu"]:
        try:
            seen = ask("device", python, env)
        except ProbeError as error:
            wrong = f"torch_npu cannot tell of it: {error}"
    name = seen.get("name") or next(iter(listed.values()), None)
    if name is None:
        yield Finding(
            "device", "not seen" if wrong else None, "install the NPU driver; `npu-smi info` must list it", wrong
        )
        return
    platform = kits.platform_of(name)
    count = seen.get("count") or len(listed)
    text = f"{count} x {name}" + (f", platform {platform}" if platform else ", platform unknown")
    cube, vector = seen.get("cube"), seen.get("vector")
    note = ""
    if cube and vector:
        text += f", {cube} cube and {vector} vector cores"
    elif platform and (usual := DEVICES[platform].cube_cores):
        note = f"usual parts have {usual} cube and {usual * DEVICES[platform].vector_cores_per_cube} vector cores"
    if not platform:
        note = "`--platform` says which one it is"
    yield Finding("device", text, "check the driver with `npu-smi info`" if wrong else "", wrong, note)
