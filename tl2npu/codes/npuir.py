"""AscendNPU IR: TL4xx."""

TABLE = """
TL401 gpu-target info: compile with `target="npuir"`
TL402 gpu-grid info: launch with `is_npu=True` and one grid axis; name the second axis `_`
TL403 missing-mode info: set `os.environ["TILELANG_ASCEND_MODE"] = "Developer"` before a kernel is compiled
TL404 gpu-gemm-keyword info: write `a_transpose`, `b_transpose` and `initC`
TL405 cleared-product info: let `initC` of the first `T.gemm` clear the accumulator
TL406 number-as-fill-value info: clear with `T.clear`; give any other number a name in the kernel and fill with that
TL407 reduced-axis-dropped info: keep the reduced axis with extent 1: `(M, 1)`
TL408 unkeepable-axis error: allocate the reduction's result and its users with the reduced axis: `(M, 1)`
TL409 unvectorised-body info: write one assignment with one comparison and no local names; bind loop invariants before
    the loop
TL410 function-in-parallel info: call it on the whole tile: `T.vexp2(x, x, tmp)`
TL411 deep-pipeline info: write `num_stages=2`
TL412 choice-of-single-values info: write `T.Select(condition, a, b)`
TL413 global-operand-in-parallel info: load it into a tile before the loop, and store the result after it
TL414 copy-between-tensors info: copy into a tile, and from there to the other tensor
TL415 unreducible-tile error: reduce with max, min or sum over one axis, and scan forwards
TL416 gpu-atomic-add info: add a whole tile to slices: `T.atomic_add(C[i : i + M, :], tile)`
TL417 fill-of-a-part error: fill a tile of that size, and copy it to the part
TL418 function-without-code error: use a function with a vector operation, in a `T.Parallel` with one statement over
    whole tiles
TL419 gpu-reduction-form info: pass `clear` by name, and store absolute values in a separate tile
TL420 ascend-kernel info: compile it with `target="npuir"`, launch without `threads`, and let the compiler assign the
    memories
TL421 destination-first info: write the operands before the destination: `T.vadd(a, b, dst)`
TL422 gemm-v0 info: write `T.gemm(A, B, C, initC=..., a_transpose=..., b_transpose=...)`
TL423 flat-statistics info: give a vector of row statistics the shape `[M, 1]`, one along the columns `[1, N]`
TL424 row-loop info: write one operation on whole tiles: `[M, 1]` is broadcast over the rows
TL425 hand-over-copy info: use the other core's tile directly; the compiler transfers it
TL426 fill-value info: write `T.clear(x)`, or bind the value to a name and write `T.vbrc(name, x)`
TL428 no-counterpart error: write it with operators that AscendNPU IR has, or migrate with `--to ascendc`
TL429 two-axes error: use one vector for rows and another one for columns
TL430 part-of-a-tile error: write the operation for a whole tile, with operands of one shape
TL431 order-of-cores info: write the copy that brings a tile above the statement that reads it
TL432 persistent-loop info: write a loop over the tiles of the block: `for wave in T.serial(T.ceildiv(tiles - cid,
    blocks))`
TL433 vector-core-work info: launch twice as many blocks: `cid = block // 2`, `vid = block % 2`
TL436 npuir-older-form error: write the statement in the current syntax of AscendNPU IR
TL437 unclear-order error: write the statements in data-flow order: every tile is written before it is read
TL438 copy-over-the-edge info: copy only what is in the tensor: `rows = T.min(M, size - x)`, `T.copy(A[x : x + rows, :],
    a[0:rows, :])`
TL439 unguarded-edge warning: call the kernel with multiples of its tiles, or end the copy with `T.min`
TL440 npuir-kernel info: launch with `T.Kernel(n, threads=2, is_npu=True) as (cid)`, and compile without
    `target="npuir"`
TL441 npuir-expert-kernel error: write the kernel in the Developer mode of AscendNPU IR first, or compile it for that
    target
TL442 npuir-operator error: write what the statement computes with other operators, or as a `T.Parallel` loop
TL443 npuir-vector-operator info: write it as a `T.Parallel` loop, one statement for each operator
TL444 npuir-sized-region info: write slices: `x[0:m, 0:n]`
TL445 npuir-vector-core error: compute whole tiles; the compiler splits them between the vector cores
TL446 npuir-row-values info: store per-row values in 1-D tiles, `[M]`
TL447 npuir-tail info: copy whole tiles; a copy is clamped at the end of the tensor
TL448 npuir-product info: write `T.gemm_v0(A, B, C, transpose_A=, transpose_B=, init=)`
TL449 npuir-fill info: write `T.tile.fill(x, value)`
TL450 npuir-reduction info: write `T.reduce_max(x, m, dim=-1)` and the like
TL451 npuir-mode-switch info: remove it; the modes of Ascend C are chosen by `pass_configs`
TL452 npuir-series-function warning: compare results only where the arguments are near 0, or write the approximation out
TL453 guarded-element info: write `if condition: x[i, j] = A[row, j]`, and an `else` for the rest
TL454 converting-part info: convert into a tile of the target's type, and copy that into the part
TL455 float-to-integer info: convert with `T.vcast(x, n, round_mode="trunc")`, which cuts off as a GPU does
TL460 missing-in-npuir error: use an operator that docs/dialect-npuir.md lists with a mode; element types are strings
TL461 npuir-arguments error: use the arguments that docs/dialect-npuir.md lists, all after the buffers by keyword
TL462 npuir-literal-fill error: bind the number to a name in the kernel first, or use `T.clear` for zero
TL463 npuir-lost-axis error: give both operands the same rank: statistics of rows are `[M, 1]`
TL464 npuir-product-operands error: use tiles of `[m, k]`, `[k, n]` and `[m, n]` in types that a gemm supports
TL465 npuir-copy-size error: write slices on the partial side, or `size=[...]` with start indices on both
TL466 npuir-launch error: launch with `T.Kernel(n, is_npu=True) as (cid, _)`, and loop with fixed bounds
TL467 npuir-scalar-loop warning: use constant extents, plain indices and one assignment per statement, or a vector
    operator such as `T.vadd`
"""
