"""``tl2npu doctor`` on machines that are made of folders: fake packages, a fake tool kit, a fake ``npu-smi``.

The format of ``npu-smi info -m`` is that of public logs: NPU ID, chip ID, logic ID, on some machines a physical ID,
name; micro-controllers have no logic ID. Paths of the tool kit are those that ``libgen.py`` of tilelang-ascend has.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tl2npu.cli import cli
from tl2npu.toolchain.cann import chips, platform_of
from tl2npu.toolchain.doctor import examine

SMI_A2 = """\
\tNPU ID                         Chip ID                        Chip Logic ID                  Chip Name
\t0                              0                              0                              Ascend 910B3
\t0                              1                              -                              Mcu
\t1                              0                              1                              Ascend 910B3
"""
SMI_A3 = """\
NPU ID  Chip ID  Chip Logic ID  Chip Phy-ID  Chip Name
0       0        0              0            Ascend910
0       1        1              1            Ascend910
0       2        -              -            Mcu
"""
TORCH_NPU = """
import torch, types
torch.npu = types.SimpleNamespace(
    is_available=lambda: True, current_device=lambda: 0, device_count=lambda: 2,
    get_device_properties=lambda n: types.SimpleNamespace(name="Ascend910_9392", cube_core_num=24, vector_core_num=48),
)
"""


class Fake:
    """A machine below ``root``; ``env`` is its environment, with the interpreter that runs this test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.env = {"PYTHONPATH": str(root / "packages"), "PATH": str(root / "bin")}

    def write(self, path: str, text: str = "", executable: bool = False) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        if executable:
            file.chmod(0o755)
        return file

    def command(self, name: str, output: str = "") -> None:
        self.write(f"bin/{name}", f"#!/bin/sh\n/bin/cat <<'EOF'\n{output}\nEOF\n", executable=True)

    def tilelang(self, module: str = "ascend_tile", init: str = "") -> None:
        self.write("packages/torch/__init__.py")
        self.write("packages/torch/VERSION", "2.6.0")
        self.write("packages/tilelang/__init__.py", init)
        self.write("packages/tilelang/VERSION", "0.1.4\n")
        self.write(f"packages/tilelang/language/{module}.py")
        self.write("packages/requirements.txt")
        for name in ("pto-isa", "catlass"):
            self.write(f"packages/3rdparty/{name}/include/a.h")

    def cann(self) -> None:
        home = "Ascend/ascend-toolkit/latest"
        self.write(f"{home}/aarch64-linux/ascend_toolkit_install.info", "package_name=Ascend\nversion=8.5.0\n")
        self.write("Ascend/ascend-toolkit/set_env.sh")
        self.write(f"{home}/compiler/ccec_compiler/bin/bisheng", executable=True)
        self.env |= {"ASCEND_HOME_PATH": str(self.root / home), "ACL_OP_INIT_MODE": "1"}


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    (tmp_path / "bin").mkdir()
    return Fake(tmp_path)


def test_a_machine_that_has_nothing(fake: Fake) -> None:
    machine = examine(environment=fake.env)
    assert [name for name in machine.lacks if machine.runs(name)] == ["sim"]
    assert machine.lacks["compile"] == ("torch", "tilelang", "import tilelang")
    assert machine.findings["torch"].help == f"{sys.executable} -m pip install torch --index-url https://download.pytorch.org/whl/cpu"
    assert "https://github.com/tile-ai/tilelang-ascend.git" in machine.findings["tilelang"].help
    assert machine.findings["python"].usable


def test_a_laptop_with_tilelang_ascend_compiles(fake: Fake) -> None:
    fake.tilelang()
    machine = examine(environment=fake.env)
    assert machine.findings["tilelang"].value == f"0.1.4 in {fake.root}/packages/tilelang, branch ascendc_pto"
    assert (machine.runs("compile"), machine.targets) == (True, ("ascendc", "pto"))
    assert machine.lacks["npu"] == ("torch_npu", "CANN", "bisheng", "ACL_OP_INIT_MODE", "device")
    assert "CANN is missing (install CANN 8.3.RC1 or later" in machine.reasons("npu")


def test_branch_npuir_compiles_for_itself_only(fake: Fake) -> None:
    fake.tilelang("customize_npuir")
    machine = examine(environment=fake.env)
    assert (machine.runs("compile"), machine.targets) == (True, ("npuir",))
    assert machine.lacks["npu"][0] == "tilelang"


def test_tilelang_for_gpus_is_another_one(fake: Fake) -> None:
    fake.tilelang("tma")
    machine = examine(environment=fake.env)
    assert machine.findings["tilelang"].wrong == "this is TileLang for GPUs, not TileLang-Ascend"
    assert not machine.runs("compile")


@pytest.mark.parametrize(
    ("init", "wrong", "mend"),
    [
        ("import tqdm_of_nobody", "No module named 'tqdm_of_nobody'", "requirements.txt"),
        ("raise OSError('libtvm.so: cannot open')", "OSError: libtvm.so: cannot open", "install_ascend.sh"),
        ("import os; os.kill(os.getpid(), 11)", "the process died by SIGSEGV", "install_ascend.sh"),
    ],
    ids=["module", "library", "signal"],
)
def test_what_importing_it_comes_to(fake: Fake, init: str, wrong: str, mend: str) -> None:
    fake.tilelang(init=init)
    found = examine(environment=fake.env).findings["import tilelang"]
    assert (wrong in found.wrong, mend in found.help, found.usable) == (True, True, False)


def test_without_its_adapter_it_compiles_and_does_not_launch(fake: Fake) -> None:
    fake.tilelang(init="from cython_wrapper import CythonKernelWrapper")
    machine = examine(environment=fake.env)
    assert machine.runs("compile")
    assert "Cython adapter" in machine.lacks["npu"]


def test_a_tool_kit_and_what_is_not_on_path(fake: Fake) -> None:
    fake.tilelang()
    fake.cann()
    found = examine(environment=fake.env).findings
    assert (found["CANN"].value or "").startswith("8.5.0 in ")
    assert found["bisheng"].value is None
    assert found["bisheng"].note.endswith("compiler/ccec_compiler/bin/bisheng is not on PATH")
    assert found["bisheng"].help == f"source {fake.root}/Ascend/ascend-toolkit/set_env.sh"
    fake.env["ASCEND_HOME_PATH"] = "/nowhere/at/all"
    assert "names /nowhere/at/all, which is not a folder" in examine(environment=fake.env).findings["CANN"].wrong


def test_a_whole_machine(fake: Fake) -> None:
    fake.tilelang()
    fake.cann()
    fake.write("packages/torch_npu/__init__.py", TORCH_NPU)
    fake.command("bisheng")
    fake.command("npu-smi", SMI_A3)
    machine = examine(environment=fake.env)
    assert machine.findings["device"].value == "2 x Ascend910_9392, platform A3, 24 cube and 48 vector cores"
    assert [name for name in machine.lacks if machine.runs(name)] == ["sim", "compile", "npu"]
    fake.write("Ascend/ascend-toolkit/latest/tools/simulator/Ascend910B1/lib/libruntime_camodel.so")
    assert examine(environment=fake.env).runs("camodel")
    fake.env["ACL_OP_INIT_MODE"] = "0"
    assert examine(environment=fake.env).lacks["npu"] == ("ACL_OP_INIT_MODE",)


def test_only_the_first_folder_of_a_simulator_is_linked(fake: Fake) -> None:
    """As ``_get_simulator_lib_path`` does it, libgen.py:52-77."""
    fake.cann()
    fake.write("Ascend/ascend-toolkit/latest/tools/simulator/Ascend910B1/lib/other.so")
    fake.write("Ascend/ascend-toolkit/latest/tools/simulator/Ascend910_9599/lib/libruntime_camodel.so")
    found = examine(environment=fake.env).findings["camodel"].value or ""
    assert (found.startswith("A5: "), "A2" in found) == (True, False)


def test_devices_by_the_names_of_npu_smi(fake: Fake) -> None:
    fake.command("npu-smi", SMI_A2)
    command = str(fake.root / "bin" / "npu-smi")
    assert chips(command) == {0: "Ascend 910B3", 1: "Ascend 910B3"}
    found = examine(environment=fake.env).findings["device"]
    assert found.value == "2 x Ascend 910B3, platform A2"
    fake.command("npu-smi", SMI_A3)
    assert chips(command) == {0: "Ascend910", 1: "Ascend910"}
    assert examine(environment=fake.env).findings["device"].value == "2 x Ascend910, platform unknown"
    fake.command("npu-smi", "dcmi model initialized failed, because the device is used. ret is -8020")
    assert chips(command) == {}
    assert examine(environment=fake.env).findings["device"].value is None


@pytest.mark.parametrize(
    ("name", "platform"),
    [("Ascend910B2", "A2"), ("Ascend910_9392", "A3"), ("Ascend950PR_9599", "A5"), ("Ascend910", None)],
)
def test_platforms_as_the_compiler_tells_them(name: str, platform: str | None) -> None:
    """``tilelang/utils/target.py:150-158``; plain "910" it takes for A2, which npu-smi calls chips of A3 as well."""
    assert platform_of(name) == platform


def test_the_command(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ASCEND_HOME_PATH", "ASCEND_HOME", "TL_ROOT", "ACL_OP_INIT_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", fake.env["PATH"])
    monkeypatch.setenv("PYTHONPATH", fake.env["PYTHONPATH"])
    done = CliRunner().invoke(cli, ["doctor"])
    assert done.exit_code == 1, done.output
    assert "--backend npu      cannot: lacks torch" in done.output
    fake.tilelang()
    done = CliRunner().invoke(cli, ["doctor", "--json"])
    assert done.exit_code == 0
    report = json.loads(done.output)
    assert [b["name"] for b in report["backends"] if b["runs"]] == ["sim", "compile"]
    assert {"name", "found", "usable", "value", "wrong", "note", "help"} == set(report["findings"][0])
    assert CliRunner().invoke(cli, ["doctor", "--backend", "npu"]).exit_code == 1
    done = CliRunner().invoke(cli, ["doctor", "--python", "/nowhere/python"])
    assert done.exit_code == 1
    assert "/nowhere/python cannot be started" in done.output


def test_nothing_heavy_is_imported_here(fake: Fake) -> None:
    before = set(sys.modules)
    fake.tilelang()
    examine(environment=fake.env)
    assert not {"torch", "tilelang", "torch_npu"} & (set(sys.modules) - before)
