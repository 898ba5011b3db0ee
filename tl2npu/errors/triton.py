"""What triton-ascend and AscendNPU IR's compiler say of Triton kernels."""

from __future__ import annotations

from tl2npu.errors.entry import Row

# fmt: off
ROWS: tuple[Row, ...] = (
    ("ub-overflow", "cause", "TL801 TL197",
     ("ub overflow, requires {bits} bits while {available} bits available", "ub overflow, requires"),
     "kernel.ttadapter.mlir:3:3: error: ub overflow, requires 3072256 bits while 1572864 bits available!",
     "the tiles of a Triton kernel do not fit into UB; the numbers are bits, 1,572,864 are 192 KB. Buffers count twice "
     "where `multibuffer` is on",
     "use smaller blocks or `multibuffer=False`; `tl.range` instead of `tl.static_range`",
     "triton-lang/triton-ascend#302, #1638, #2246"),
    ("l1-overflow", "cause", "TL801 TL197",
     ("cbuf overflow, requires", "cc overflow, requires"),
     "kernel.ttadapter.mlir:3:3: error: cbuf overflow, requires 8388608 bits while 4194304 bits available!",
     "the operands (cbuf, L1) or the result (cc, L0C) of `tl.dot` do not fit", "use smaller blocks",
     "AscendNPU IR, PlanMemory"),
    ("grid-limit", "cause", "TL817 TL881",
     ("grid should be less than 65536", "coreDim={blocks} can't be greater than UINT16_MAX",
      "can't be greater than UINT16_MAX", "less than or equal to 65535"),
     "RuntimeError: grid should be less than 65536! You can try \"export TRITON_ALL_BLOCKS_PARALLEL=1\"",
     "more than 65,535 programs are launched; the product of all grid axes counts",
     "launch as many programs as there are cores, each with a loop over its tasks; or `TRITON_ALL_BLOCKS_PARALLEL=1`",
     "hicann/runtime src/runtime/api/impl/api_error.cc:1073; triton-lang/triton-ascend#16; "
     "vllm-project/vllm-omni#6546"),
    ("empty-grid", "cause", "TL954",
     ("for parameter coreDim is invalid",),
     "Invalid_Argument(EE1003): KernelLaunch failed because value 0 for parameter coreDim is invalid.",
     "a kernel is launched with no blocks, or with too many: the message has the number",
     "skip the launch where there is no work; else loop over the tasks in fewer blocks",
     "triton-lang/triton-ascend#984, pull request 1221"),
    ("hir-pipeline", "envelope", "",
     ("PassManager::run failed", "Failed to run BishengHIR pipeline", "Failed to run BiShengHIR pipeline",
      "[ConvertLinalgRToBinary] encounters error",
      "MLIRCompilationError"),
     "E loc(\"kernel.ttadapter.mlir\":2:1): error: Failed to run BishengHIR pipeline",
     "the compiler behind triton-ascend failed; the other `error:` lines say why", "read the first other `error:` line",
     "triton-lang/triton-ascend#302; flagos-ai/FlagTree#1220"),
    ("hir-compile", "envelope", "",
     ("bishengir-compile', '",),
     "subprocess.CalledProcessError: Command '['/usr/local/Ascend/bishengir-compile', 'kernel.ttadapter.mlir'",
     "triton-ascend shows the command that failed; its output says why", "read the `error:` lines of its output",
     "triton-lang/triton-ascend#302"),
    ("expand-shape", "cause", "",
     ("'memref.expand_shape' op",),
     "error: 'memref.expand_shape' op failed to verify: alignment of the result",
     "a reshape or `tl.flip` of a Triton kernel has no aligned form", "use a smaller block, or store and load the tile",
     "triton-lang/triton-ascend#1638"),
    ("legalize", "cause", "TL530",
     ("failed to legalize operation '{operation}'",),
     "error: failed to legalize operation 'tt.dot' that was explicitly marked illegal",
     "triton-ascend has no form of this operation with these types or shapes",
     "`tl2npu migrate` reads the kernel and says which operator it is", "triton-lang/triton-ascend"),
)
# fmt: on
