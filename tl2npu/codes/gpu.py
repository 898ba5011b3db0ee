"""GPU kernels: TL1xx and TL6xx."""

TABLE = """
TL100 fp8-as-float16 warning unsafe: pass float16, and round results to fp8 where a caller needs that
TL101 gpu-kernel info: launch with `is_npu=True` and give every buffer the memory that its uses need
TL102 eager-kernel info: write a factory with a `T.prim_func`; extents become arguments of the factory, outputs
    `out_idx`
TL103 irregular-eager-kernel error: declare every tensor at the top of the function, launch once after that, and return
    the `T.empty` tensors
TL104 unclear-eager-call error: pass a tensor that has the extent as an axis, and call the kernel by `f(...)` or
    `f.compile(...)`
TL105 eager-call-site info: call the factory with the extents, and its result with the tensors
TL106 several-launches info: write one factory with one prim_func for each launch, and call them in order
TL107 inseparable-launches error: only call the compiled kernel, or write a factory for each launch and call their
    kernels in order
TL108 both-vector-cores info: use `T.get_block_binding(1)` for row numbers, and allocate vectors along the columns in
    front of `T.Kernel`
TL109 loop-over-threads info: write `for tx in T.Parallel(threads)` around the statement
TL110 dtype-object info: write the dtype as a string: `"float16"`
TL111 subscripted-tensor-type info: call it: `T.Tensor((M, N), dtype)`
TL112 power-of-two-scale info: round the result of `exp` to bfloat16 and back; compare with it to round a logarithm
TL113 dynamic-size info: declare each size in a statement of its own: `m = T.symbolic("m")`
TL114 rounded-approximation warning: round `T.log2` directly, or compare with exact powers
TL115 gpu-hint info: remove it; it has no effect on an NPU
TL116 unportable-annotation error: store the tensor in row-major order in every kernel that uses it, without the
    annotation
TL117 macro-call info: write the body of the macro where it is called
TL118 uninlinable-macro error: write the body of the macro where it is called
TL119 gpu-loop-form info: use `T.serial`, `T.unroll` or a 2-D `T.Parallel`
TL120 gpu-control-flow error: use a loop with fixed bounds, and an `if` around what must not run
TL121 nested-parallel info: write the serial loop outside and the parallel loop inside
TL122 gpu-jit-argument info: remove it; it is an argument of the GPU compiler
TL123 unknown-jit-argument error: remove the argument, or replace it by its NPU counterpart
TL124 gpu-host-code info: use the device `npu` and `torch_npu`
TL125 remaining-gpu-host-code warning: port this line by hand, once no kernel of the file needs a GPU
TL126 idle-parameter info display-only: take the parameter out of the configurations and the calls: the NPU has no such
    choice
TL127 empty-first-loop info: put an `if` around the loop that leaves it out where the grid has one block
TL128 run-time-grid info: launch one block per core, and loop over the block's share of the tasks
TL129 permuted-tensor warning safe: make sure that host code only passes the tensor on, or reads it in row-major order
TL130 gpu-allocation info: allocate vector tiles and gemm operands with `T.alloc_shared`, products with
    `T.alloc_fragment`
TL131 dual-use-operand info: use one tile in UB and one in L1, with a copy between them
TL132 gpu-gemm info: call `T.gemm_v0` and let `init` clear the product
TL133 product-used-by-vector info: copy the product from L0C to UB and use it there
TL134 product-without-start error: clear the accumulator before its first gemm
TL135 one-way-product-loop error: use a smaller tile for the product, or move the vector code out of the loop
TL136 partial-gemm-operand error: copy the part into a tile of its own
TL137 staged-product info: store the product to global memory directly
TL138 gpu-launch info: launch one grid axis with `is_npu=True`
TL139 gpu-pipeline info: use `T.serial` for loops with work of the vector cores
TL140 function-of-an-expression info: compute the expression first, then the function of the element: `y = a - b`, `y =
    T.exp(y)`
TL141 vector-on-the-left info: write the tile first: `a * s[i]`, `a * -1.0 + s[i]`
TL142 base-two-function info: use `T.exp` and `T.log` with a constant factor
TL143 limit-by-a-number info: use `T.tile.max` and `T.tile.min`
TL144 mixed-element-types info: compare results with a tolerance, not bit by bit
TL145 condition-on-elements info: use `T.tile.compare` and `T.tile.select`
TL146 element-by-element info: correct but slow; rewrite it so that whole rows are computed at once
TL147 name-inside-of-parallel info: write the expression where it is used, or store it in a tile
TL148 part-of-the-columns info: copy the columns into a tile of their own, and compute there
TL149 constant-or-copy-in-parallel info: use `T.tile.fill` and `T.copy`
TL150 function-without-instruction error: write the function with exp, log, sqrt and arithmetic
TL151 element-without-instruction error: copy the elements into the order of the loop first
TL152 function-on-tiles-only info: use the operator on whole tiles: `T.tile.sigmoid(y, x)`
TL153 statement-without-vector-form error: store each element as an expression of elements in the same row and column
TL154 conversion-without-instruction error: convert through float32 or float16
TL155 tile-across-an-axis info: give the tile the axes of length 1 that the tensor has between rows and columns
TL156 converting-copy info: convert in steps that the vector core supports: truncate floats first, drop upper integer
    bits by shifts
TL157 division-by-row-value info: broadcast the divisors to a tile and divide by that
TL158 row-by-row-loop info: give statements with a value per row or column a `T.Parallel` of their own
TL159 table-on-chip info: read tables of conditions or indices from global memory, which both cores can read
TL160 gpu-fill info: fill a vector tile with `T.tile.fill(tile, value)`
TL161 unfillable-buffer error: fill a whole vector tile or consecutive rows of one, and copy it to the target
TL162 accumulating-reduction info: reduce into a separate tile and combine both with `T.tile.max`, `min` or `add`
TL163 gpu-reduction info: use `T.reduce_max`, `reduce_min` or `reduce_sum`, after `T.tile.abs` for absolute values
TL164 unsupported-reduction error: reduce a float tile of at most two axes, with rows of a multiple of 32 bytes, by max,
    min or sum
TL165 gpu-scan info: write the scan as a loop over rows or elements
TL166 element-copy-loop info: move whole regions with `T.copy`
TL167 global-operand info: copy to a tile before the loop, and from a tile after it
TL168 tail-guard info: drop the guard; a copy stops at the end of the tensor and pads the tile with zeros
TL169 row-by-row-load info: load the selected rows one by one in a serial loop
TL170 scattered-access error: access global memory by regions whose rows are contiguous, or rearrange the tensor on the
    host
TL171 gpu-copy info: use plain `T.copy(source, target)` of equal types
TL172 element-atomic info: add a whole tile with `T.tile.atomic_add(tensor[start], tile)`
TL173 unsupported-atomic error: add whole tiles to contiguous regions, and do not use the old value
TL174 thread-private-storage info: use `T.alloc_var` for a scalar and a tile for an array
TL175 thread-private-accumulation error: keep running values in a tile and reduce it with `T.reduce_sum`, `reduce_max`
    or `reduce_min`
TL176 parallel-reducer info: accumulate in a tile and reduce it once, after the loop
TL177 negative-index info: count from the start of the axis: `x[M - 1, j]`
TL178 read-outside-of-tensor info: load only rows inside the tensor, one by one
TL179 read-out-of-its-condition error: put the statement under an `if` with that condition
TL180 tensor-memory error: write the product as `T.gemm` on shared tiles with a fragment as its result
TL181 tensor-core-instruction error: write the product as `T.gemm` on shared tiles with a fragment as its result
TL182 hand-made-pipeline error: use plain `T.copy` in a `T.Pipelined` loop; the Ascend compiler inserts the
    synchronisation
TL183 warp-specialisation error: write one loop with loads, gemms and vector work in order
TL184 thread-level-code error: rewrite it with operators on whole tiles: `T.copy`, `T.Parallel`, `T.reduce_*`
TL185 foreign-code error: rewrite the foreign code with tile operators
TL186 thread-block-cluster error: launch a plain grid in which each block loads its own data
TL187 grid-synchronisation error: write a factory with one prim_func for each phase, and call their kernels in order
TL188 device-random-numbers error: generate the random numbers on the host and pass them as a tensor
TL189 sparse-or-scaled-product error: expand or scale the operands first and use a dense product
TL190 unfolding-copy error: run im2col on the host, or copy the window of each tap
TL191 foreign-element-type error: migrate fp8 kernels with `--fp8 float16`; for others use float16, bfloat16, float32 or
    int8
TL192 atomic-other-than-add error: write one partial result per block and combine them in a second kernel
TL193 raw-address error: pass tensors, and offsets as integers
TL194 compiler-building-block error: write the kernel with the operators of TileLang
TL195 symbolic-tile error: use a constant tile extent; copies clamp at the end of the tensor
TL196 missing-operation error: write it with additions, products, shifts and comparisons of whole tiles
TL197 oversized-tile info unsafe: choose tile sizes that fit on chip
TL198 ordered-pipeline info: write plain copies and gemms in data-flow order
TL199 several-stores-in-one error: write one store per statement, with old values saved in a name first
TL600 transposed-operand info: store the tile as it is read, and let the gemm transpose it
TL601 reduction-without-start warning safe: write `clear=True`, or fill the result before the reduction
TL602 tensor-of-second-shape info: make the view in front of `T.Kernel`
TL603 element-wise-load warning safe: rearrange the tensor on the host, so that the elements of a row lie side by side
TL605 unknown-function-of-callers error: choose the function by a name (`"relu"`) under `if` in the loop
TL606 single-element-store info: copy the element from a row of 32 bytes in UB
TL611 gathered-rows info: store each gathered row in L1 by itself
TL612 stages-of-both-cores info: keep the stages of a loop over both cores
TL613 staged-tile info: allocate one stage, and load it before it is read
TL615 launch-for-each-phase info: write a launch for each phase
TL616 tf32-as-float32 info unsafe: compare with a tolerance of 2^-11 for each factor
TL617 tile-scheduler info: write a loop over the tiles of a block
TL618 sliced-store info: store the whole tile
TL620 block-per-task info: launch one block per core, and loop over the block's share of the tasks
TL621 reused-memory info: allocate a tile of its own
TL622 tile-of-one-arm info: make a tile under the condition that needs it
TL623 token-around-loop info: order both cores by a token
TL624 sum-from-zeros info: start the sum with a product of zeros
TL625 configurations-of-a-call info: make the configurations of two tuples
TL626 mask-of-tail info: mask the tail of a tensor where there is one
TL627 columns-apart info: allocate a tile for each part of the columns
TL628 short-tile warning safe: allocate as many elements as the loops use
"""
