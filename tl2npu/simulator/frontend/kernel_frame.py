"""``T.Kernel``: the grid of a launch."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from tl2npu.simulator.errors import TraceError
from tl2npu.simulator.frontend.builder import Builder
from tl2npu.simulator.ir.expr import Value, Var, plain
from tl2npu.simulator.ir.stmt import Launch


class KernelFrame:
    """The context manager that ``T.Kernel(...)`` gives."""

    def __init__(self, *blocks: Any, threads: Any = None, is_cpu: bool = False, is_npu: bool = False, **_: Any) -> None:
        self.blocks: tuple[Value, ...] = tuple(plain(b) for b in blocks)
        self.threads = [int(t) for t in threads] if isinstance(threads, (list, tuple)) else threads
        self.is_cpu = is_cpu
        self.is_npu = is_npu
        self.names: list[str] = []
        self.many = False

    def named(self, names: list[str], many: bool) -> KernelFrame:
        """The names behind ``as``; ``many`` for a tuple."""
        self.names, self.many = names, many
        return self

    def __enter__(self) -> Any:
        builder = Builder.current()
        if builder.launch is not None:
            raise TraceError("a T.Kernel inside another T.Kernel", builder.here())
        self._check(builder)
        if builder.on_launch is not None:
            builder.on_launch()
        builder.npu = self.is_npu
        names = [*self.names, *("bx", "by", "bz")[len(self.names) :]]
        variables = tuple(
            Var(builder.unique(n if n != "_" else "block")) for n, _ in zip(names, self.blocks, strict=False)
        )
        vid = None
        if self.is_npu and self.threads is None:
            at = len(self.blocks)
            name = self.names[at] if self.many and len(self.names) > at and self.names[at] != "_" else "vid"
            vid = Var(builder.unique(name))
        self.launch = Launch(self.blocks, variables, self.threads, self.is_npu, vid, [], builder.here())
        if builder.npuir:
            self.launch.npuir = self.launch.is_npu = True
        self.launch.body += builder.outside
        self.launch.outside = frozenset(alloc.buffer.number for alloc in builder.outside)
        builder.launch = self.launch
        builder.kernel.launches.append(self.launch)
        builder.bodies.append(self.launch.body)
        given = (*variables, vid) if vid is not None else variables
        if self.many:
            if len(self.names) != len(given):
                raise TraceError(
                    f"T.Kernel gives {len(given)} name(s) here, but {len(self.names)} stand behind `as`", builder.here()
                )
            return given
        if (builder.npuir or self.is_npu) and self.names and len(given) > 1:
            raise TraceError(
                f"T.Kernel gives {len(given)} names here: write `as ({', '.join([*names, '_'][: len(given)])})`",
                builder.here(),
            )
        return variables[0] if self.is_npu or len(variables) == 1 else given

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        builder = Builder.current()
        if kind is None:
            builder.bodies.pop()
        builder.launch = None

    def _check(self, builder: Builder) -> None:
        if builder.npuir:
            self._check_npuir(builder)
            return
        if self.is_npu and len(self.blocks) != 1:
            raise TraceError("NPU kernel must have exactly one block dimension", builder.here())
        if self.is_npu and self.threads is not None:
            threads = self.threads[0] if isinstance(self.threads, list) else self.threads
            if threads not in (1, 2):
                raise TraceError(f"NPU kernel threads must be 1 or 2, but got {threads}", builder.here())
            self.threads = threads
        if not 1 <= len(self.blocks) <= 3:
            raise TraceError(f"a grid of {len(self.blocks)} dimensions", builder.here())

    def _check_npuir(self, builder: Builder) -> None:
        """A grid of one or two dimensions (tilelang/language/kernel.py of that branch).

        A frame without ``is_npu`` has threads, which are lowered to nothing, and no number of a vector core.
        """
        if self.is_npu and self.threads is not None:
            raise TraceError("an npuir kernel has no threads: leave threads= out", builder.here())
        if not 1 <= len(self.blocks) <= 2:
            raise TraceError("NPU kernel only supports up to 2D blocks", builder.here())
