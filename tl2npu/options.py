"""What a run is asked to do: one frozen dataclass that the passes may read."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Literal

from tl2npu.devices import DEFAULT_DEVICE
from tl2npu.dialects.compiler import DEFAULT_COMPILER

Target = Literal["ascendc", "npuir", "tle-dsa"]
Threads = Literal["auto", "1", "2"]
Fp8 = Literal["refuse", "float16"]
PassConfigPolicy = Literal["needed", "four", "keep"]
BackendName = Literal["sim", "compile", "npu", "camodel"]
CodeGenerator = Literal["ascendc", "pto", "npuir"]
Platform = Literal["A2", "A3", "A5"]

MAX_FILE_SIZE = 4 * 1024 * 1024
VERIFY_TIMEOUT = 120.0

Sanitizer = Literal["memcheck", "racecheck", "initcheck", "synccheck"]
MAX_ELEMENTS = 1 << 18
"""Elements that CANN's simulator is given without being asked: it is about 1000 times slower than an NPU."""


@dataclass(frozen=True)
class Backend:
    """What judges kernels where the code of the files is executed; only the command line chooses it.

    ``target`` is the code generator of TileLang-Ascend that compiles, ``platform`` what it compiles for; None for what
    ``tilelang.jit`` says of each kernel. ``python``: the interpreter that has TileLang-Ascend, None for this one.

    Of ``npu`` and ``camodel``: ``device_id`` is the NPU, as ``npu-smi`` counts; None for the first that is visible.
    ``repeat``: how often each launch is run, None for 3 (``camodel``: 1). ``sanitize``: a tool of msSanitizer.
    ``time``: also measure with ``msprof op``. ``max_elements``: of all tensors of a launch, for ``camodel``.
    """

    name: BackendName = "sim"
    target: CodeGenerator | None = None
    platform: Platform | None = None
    python: str | None = None
    device_id: int | None = None
    repeat: int | None = None
    sanitize: Sanitizer | None = None
    time: bool = False
    max_elements: int = MAX_ELEMENTS


@dataclass(frozen=True)
class Options:
    """The settings of a run.

    ``target``: the language that is written: Ascend C's Developer mode, that of AscendNPU IR, or Triton with
    ``tle.dsa``. ``grid2d``: a grid of two axes keeps them, where the target knows such grids.
    ``threads``: ``1`` asks for one vector core where two would do as well, ``2`` never offers one.
    ``pass_config_policy``: write the keys that are ``needed``, the usual ``four``, or ``keep`` what stands there.
    ``rows_per_block``: rows that a block computes where a Triton kernel computes one, if they are computed apart.
    ``tuned``: ``NAME=VALUE`` for constants of Triton kernels that ``autotune`` chooses, where it is not seen how.
    ``fp8``: refuse kernels with 8-bit floats, which A2 and A3 lack, or write float16, which has every value of theirs.
    ``unsafe``: also make edits that change what a caller asks for, such as smaller tiles.
    ``fixed_core``: a GPU kernel with more blocks than the device has cores loops over them, one block for each core.
    ``keep_expert``: leave kernels with hand-written mma pipelines as they are.
    ``self_check``: evaluate old and new kernel before one is written.
    ``partial``: mark in kernels that are refused where manual work is left. ``notes``: say in those that are migrated
    where one should look.
    ``device`` and ``ascend_version`` are keys of the tables of devices and compilers. ``select`` and ``ignore`` are
    codes or beginnings of codes and choose the diagnostics that are reported. ``max_file_size`` is in bytes,
    ``verify_timeout`` the time in seconds that each kernel may take where kernels are executed, ``backend`` by what.
    ``operators``: what own wrappers mean, as name and operator of TileLang (docs/own-operators.md).
    ``kernels``: only these, all others are left as they are; see :meth:`selects`. ``calls``: of factories, as text; a
    check judges these in place of those in the file.
    """

    target: Target = "ascendc"
    grid2d: bool = False
    device: str = DEFAULT_DEVICE.name
    ascend_version: str = DEFAULT_COMPILER.version
    threads: Threads = "auto"
    rows_per_block: int = 1
    tuned: tuple[str, ...] = ()
    fp8: Fp8 = "refuse"
    unsafe: bool = False
    fixed_core: bool = False
    keep_expert: bool = False
    partial: bool = False
    notes: bool = False
    self_check: bool = True
    pass_config_policy: PassConfigPolicy = "needed"
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    max_file_size: int = MAX_FILE_SIZE
    verify_timeout: float = VERIFY_TIMEOUT
    backend: Backend = field(default_factory=Backend)
    operators: tuple[tuple[str, str], ...] = ()
    kernels: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()

    def selects(self, path: str, kernel: str) -> bool:
        """Whether a kernel is one of ``kernels``, or there are none.

        Each is the name of a report (``factory.main``), a part of it (``factory``, ``main``), or ``FILE::NAME``.
        """
        return not self.kernels or any(names(wanted, path, kernel) for wanted in self.kernels)


def names(wanted: str, path: str, kernel: str) -> bool:
    """Whether ``[FILE::]NAME`` names a kernel of a file; FILE may be the end of the path."""
    file, given, name = wanted.rpartition("::")
    parts = PurePath(file).parts
    if given and PurePath(path).parts[-len(parts) :] != parts:
        return False
    return kernel == name or name in kernel.split(".") or kernel.endswith(f".{name}")
