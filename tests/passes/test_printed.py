"""``--print-after`` and ``--print-all``: the kernel behind a pass, on standard error."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from tl2npu.cli import cli

KERNEL = Path(__file__).parents[2] / "fixtures" / "gpu" / "masked_fill" / "before.py"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["migrate", "--check", *arguments, str(KERNEL)])


def test_the_kernel_is_printed_behind_one_pass() -> None:
    printed = run("--print-after", "grid").stderr
    assert printed.count("# after ") == 1
    assert printed.startswith("# after gpu.launch.grid\n@T.prim_func\ndef fill_where(")
    assert "is_npu=True" in printed
    assert "T.tile.compare" in printed, "what earlier passes wrote is there"


def test_the_kernel_is_printed_behind_every_pass_in_their_order() -> None:
    lines = run("--print-all").stderr.splitlines()
    names = [line.removeprefix("# after ") for line in lines if line.startswith("# after ")]
    assert names.index("gpu.elementwise") < names.index("gpu.launch.grid") < names.index("host.pass_configs")
    assert not any(name.startswith(("job", "pipelines", "writing")) for name in names)


def test_nothing_is_printed_unasked() -> None:
    assert "# after" not in run().output
