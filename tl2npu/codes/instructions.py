"""Instructions and limits of the compiler: TL7xx."""

TABLE = """
TL700 unaligned-access error: pad the tile to rows of 32 bytes, load the shifted window from global memory, or copy
    element by element
TL701 unproved-alignment warning: assert it in the factory, so that a size that is not a multiple fails before the
    launch
TL702 copy-at-any-byte info: copy element by element
TL703 unpadded-rows info: pad the rows of the tile to 32 bytes
TL710 element-type-without-instruction error: compute in a supported type, and convert before and after
TL711 cast-without-instruction error: convert through intermediate types, each with a supported rounding mode
TL712 half-reciprocal warning: broadcast the divisor to a tile and divide tiles, or divide in float32
TL720 unproved-capacity warning: call the factory in this file, or set parameter defaults, with sizes that fit
TL721 overwritten-tile error: fill the tile before the loops, so that it keeps its address to their end
TL730 call-without-signature error: use the arguments that the function of TileLang-Ascend has
TL731 lazy-expression info: rewrite it so that all parts can be evaluated; the kernel parser evaluates every one
TL732 python-that-is-not-parsed error: compute it in the factory, before the prim_func, and write one index or slice for
    each axis
TL733 function-in-a-scalar-loop error: use the operator on the whole tile, such as `T.tile.exp(y, x)`, before or after
    the loop
TL734 file-that-cannot-be-imported error: move the kernels that stay as they are, with what only they need, into a file
    of their own
TL735 kernel-beside-one-for-the-gpu error: give each prim_func a factory of its own, or write the other one for the NPU
    too
TL736 tensor-of-bool error: declare the tensor as uint8, compare with 0 in the kernel, and pass `mask.to(torch.uint8)`
TL737 choice-inside-of-a-store error: write `if condition:` with a store in each branch
TL738 packed-mask-for-pto error: compile for `ascendc`, or write the condition as an `if` on single elements
TL739 name-keeps-its-old-value error: write what differs under the `if` itself, or compute the value as one expression
TL740 calls-not-looked-at info display-only: to check other sizes, call the factory with them in a separate file
TL741 shapes-differ error: use operands of the same size, or write the part: `x[0:64, :]`
TL742 nan-in-a-maximum warning: select with a comparison, `T.if_then_else(x > c, x, c)`, or keep NaN out of the operand
TL743 operator-missing-for-target error: compile for target `ascendc`, or use operators that `pto` has
TL744 argument-form error: leave a bound out, `x[:32]`, or pass the slice as a keyword
TL745 element-of-two-axes error: bind the element to a name and pass that: `f = s[i, j]`
TL746 pipeline-of-one-statement error: write `T.serial`, or put two statements into the loop
TL747 name-of-the-generated-code error: give the tile, tensor or variable another name
TL748 copy-at-64-bits error: convert the index, `T.cast(row, "int32")`; make a run-time size with `T.symbolic("n")`
TL749 subtraction-of-a-negative error: add its opposite: `x + 0.25`
TL750 operator-in-place error: write the result to another tile, and copy it back
TL751 float-beside-half info: write the number in the type of the tile, or compute in float32
TL752 number-of-another-type warning: write the number in the type of the tile: `T.float16(0.5)`, or `T.cast(scale,
    dtype)`
TL753 scalar-loop warning: write the loop so that vector instructions compute it: numbers on the right, `T.tile.fill`,
    `T.tile.select`
TL760 floor-division-of-negative info: use a form that rounds down on the NPU too
TL761 division-rounds-towards-zero error: use `>> k` or `& (n - 1)`, or add a multiple of the divisor before dividing
TL762 integers-compared-as-floats error: compare in int32, or cast one side to a type of 16 bits or fewer
TL763 read-not-ordered info: keep the barrier
TL771 read-below-the-tensor warning: keep the offset at 0 or above, `tl.maximum(offset, 0)`, beside the mask
TL772 both-arms-computed warning: give the load the condition as its `mask`; keep the divisor from being 0 in lanes that
    are not chosen
TL773 mask-of-bytes warning: compare what is loaded: `flags != 0`
TL774 other-without-mask warning: leave `other` out, or give the load a `mask`
TL775 tile-never-written error: load or fill the tile before it is read, or drop it
TL776 tile-partly-written warning: fill the tile first, `T.tile.fill(x, 0.0)`, or read the part that is written
TL777 both-cores-store-the-same error: add the rows of the vector core to the index of the store, as in the load
TL780 unordered-read error: write `T.set_flag` and `T.wait_flag`, cross-core flags or `T.barrier_all()` between the two
TL781 unordered-overwrite error: write `T.set_flag` and `T.wait_flag`, cross-core flags or `T.barrier_all()` between the
    two
TL782 unpaired-cross-core-flag error: set each cross-core flag as often as the other core waits for it
TL783 copy-of-another-rank error: copy with `T.copy`, which takes any part: `T.copy(x[3, :], y)`
TL784 transposed-read error: transpose the tile first, with `T.tile.transpose`, or loop over the elements with
    `T.serial`
TL785 factory-without-kernel error: return the prim_func at the end of the factory
TL786 value-outside-of-type error: use the largest or smallest value of the type, or a wider type
TL787 unknown-element-type error: write the type as TVM does: `float16`, `bfloat16`, `float32`, `int8` to `int64`,
    `uint8` to `uint64`
TL788 wrong-output-index error: list the positions of the tensors that the kernel writes, counted from 0 over all
    parameters
TL789 operator-past-the-end error: allocate the tile as large as the operator writes, or pass a smaller count
TL790 argument-value error: pass one of the values that the message names
TL791 unknown-name error: use a name that `tilelang.language` of TileLang-Ascend has
TL792 pipelined-tile-written-again error: write the result to another tile, or use `T.serial`
TL793 overlapping-addresses error: give each tile 32-byte aligned memory of its own, or leave the addresses to memory
    planning
TL794 wide-product-not-transposed warning: load the right operand transposed, with `transpose_B=True`, or compute in
    float16 or bfloat16
TL795 unroll-of-runtime-length error: write `T.serial`
TL796 variable-in-pipeline error: write `T.serial`, or work the value out from the loop variable
TL797 part-of-runtime-size error: use the whole tile, or a size that is known when the kernel is built
TL798 copy-of-several-planes error: copy plane by plane: `for p in T.serial(planes): T.copy(X[p, i, j], x[p, :, :])`
TL799 output-partly-written warning: launch `T.ceildiv(M, rows)` blocks; copies end with their tensor
"""
