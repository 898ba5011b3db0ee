"""``tl2npu record``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from tl2npu.cli.options import DEVICE

_CHILD = Path(__file__).resolve().parents[1] / "traces" / "child" / "record.py"
_UNITS = {"K": 10, "M": 20, "G": 30}


class _Bytes(click.ParamType):  # type: ignore[type-arg]  # no generic in older versions of click
    """``256M``, ``2G``, or a number of bytes."""

    name = "bytes"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        text = str(value).strip().upper().removesuffix("B").removesuffix("I")
        shift = _UNITS.get(text[-1:], 0)
        digits = text[:-1] if shift else text
        if not digits.isdecimal() or not int(digits):
            self.fail(f"{value!r} is not a size, such as 256M", param, ctx)
        return int(digits) << shift


@click.command(short_help="EXECUTE a script and keep the launches of its kernels.")
@click.argument("script", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), required=True, help="A new folder.")
@click.option(
    "--on",
    "where",
    type=click.Choice(["auto", "installed", "sim"]),
    default="auto",
    show_default=True,
    help="The installed TileLang with its GPU or NPU, or this simulator; auto: the installed one, if there is one.",
)
@click.option("--python", metavar="PATH", help="The interpreter that has TileLang.  [default: this one]")
@click.option("--max-bytes", type=_Bytes(), default="256M", show_default=True, help="Of tensors in all.")
@click.option(
    "--launches",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Of one kernel with the same arguments and shapes.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Set before the script begins.")
@DEVICE
def record(
    script: Path,
    args: tuple[str, ...],
    output: Path,
    where: str,
    python: str | None,
    max_bytes: int,
    launches: int,
    seed: int,
    device: str | None,
) -> None:
    """EXECUTE a script and record every launch of a kernel: inputs, outputs, factory and arguments.

    The trace is a folder of JSON and npz files: `tl2npu verify NEW --reference TRACE` repeats it on another machine.
    What stands behind `--` are arguments of the script.

    The exit code is the script's, 1 if no launch was recorded, 2 if nothing could be executed.
    """
    if output.exists() and any(output.iterdir()):
        raise click.UsageError(f"{output} is not empty")
    if where == "sim" and python is not None:
        raise click.UsageError("--python goes with --on installed: the simulator runs here")
    if where == "auto":
        where = "installed" if python is not None or _has_tilelang() else "sim"
    code = _on_sim(script, args, output, device, max_bytes, launches, seed) if where == "sim" else None
    if code is None:
        from tl2npu import __version__

        limits = ["--max-bytes", str(max_bytes), "--launches", str(launches), "--seed", str(seed)]
        command = [python or sys.executable, str(_CHILD), "--out", str(output), *limits, "--tl2npu", __version__]
        try:
            code = subprocess.run([*command, str(script), *args], check=False).returncode
        except OSError as error:
            click.echo(f"error: {python}: {error.strerror}", err=True)
            sys.exit(2)
        code = code if code >= 0 else 128 - code
    sys.exit(code)


def _has_tilelang() -> bool:
    from importlib.util import find_spec

    return find_spec("tilelang") is not None


def _on_sim(
    script: Path, args: tuple[str, ...], output: Path, device: str | None, max_bytes: int, launches: int, seed: int
) -> int:
    from tl2npu.verify.threads import one_thread

    os.environ.update(one_thread())  # before NumPy is loaded
    from tl2npu.devices import DEFAULT_DEVICE
    from tl2npu.traces.child.trace_writer import summary
    from tl2npu.verify.tracing import record_file

    code, writer = record_file(script, args, output, device or DEFAULT_DEVICE.name, max_bytes, launches, seed)
    return summary(writer, code)
