"""TL58x and TL59x: FlagTree's TLE in Triton kernels."""

from __future__ import annotations

from tl2npu.results import Safety, Severity

# fmt: off
ROWS: tuple[tuple[str, str, Severity, Safety, str], ...] = (
    ("TL580", "tle-device-mesh", "error", "display-only", "write the kernel for one device, and launch it on each"),
    ("TL581", "tle-sharding", "error", "display-only", "pass each device its part of the tensor as a tensor"),
    ("TL582", "tle-reshard", "error", "display-only",
     "exchange the parts on the host, with `torch.distributed`, between two launches"),
    ("TL583", "tle-remote", "error", "display-only",
     "copy the other device's tensor on the host, with `torch.distributed`, before the launch"),
    ("TL584", "tle-shard-id", "error", "display-only", "pass the rank as an argument of the kernel"),
    ("TL585", "tle-distributed-dot", "error", "display-only", "multiply whole tiles with `tl.dot` in one block"),
    ("TL586", "tle-distributed-barrier", "error", "display-only", "end the kernel there, and launch a second one"),
    ("TL587", "tle-pipe", "error", "display-only", "write the stages one after the other in one loop"),
    ("TL588", "tle-raw", "error", "display-only", "write it with operators of Triton"),
    ("TL589", "tle-warps", "error", "display-only", "use `tl.dot` and plain loops"),
    ("TL590", "tle-scattered-index", "error", "display-only",
     "address memory on the chip by a start and consecutive elements along each axis"),
    ("TL591", "tle-mismatched-memory", "error", "display-only",
     "allocate memory of the type and shape of what is copied, and convert tensors with `.to`"),
    ("TL592", "tle-foreign-memory", "error", "display-only",
     "use `tle.gpu.smem` or the memories of `tle.dsa.ascend`"),
    ("TL593", "dropped-tle-hint", "warning", "display-only",
     "check the pipeline on the NPU: stages are those of `num_stages`"),
    ("TL594", "tle-gpu-memory", "info", "safe", "write the same with the buffers of `tle.dsa`"),
    ("TL595", "tle-without-dsa", "error", "display-only",
     "write whole buffers or slices, and read a buffer again after it is written"),
)
# fmt: on
