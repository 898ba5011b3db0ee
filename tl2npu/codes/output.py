"""What must hold of the output: TL8xx."""

TABLE = """
TL801 memory-capacity error: use smaller tiles, or fewer buffers that are live at the same time
TL810 leftover-vid error: remove vid: under `threads=2` the compiler adds the row offset itself
TL811 leftover-workspace error: remove the workspace parameter and its `workspace_idx`, or drop the on-chip copies
TL812 leftover-allocation warning: allocate with `T.alloc_shared` (L1, UB) or `T.alloc_fragment` (L0C)
TL813 missing-threads error: add `threads=2` (or `threads=1`) to `T.Kernel`
TL814 leftover-sync error: remove every scope, barrier and flag, or switch the automatic passes off
TL815 invalid-launch error: write `T.Kernel(n, threads=2, is_npu=True) as (cid)` with one grid axis
TL816 incomplete-pass-configs error: compile the kernel with it set to True in `pass_configs`
TL817 too-many-blocks error: launch a block for each core, with a loop over its tasks (`migrate --fixed-core`), or use
    larger tiles
TL820 odd-split-rows error: make the row count of the tile even, or use `threads=1`
TL821 unit-row-buffer error: use `threads=1`, or give each block two rows: half as many blocks, indices times two
TL822 replicated-vector error: allocate the vector with `T.alloc_ub` in front of `T.Kernel`, or use `threads=1`
TL823 buffer-rank-above-tensor error: give the buffer no more axes than the global tensor
TL824 split-axis-not-next-to-last error: put the split axis next to the last one in the global tensor, or use
    `threads=1`
TL825 partial-buffer-copy error: copy the whole buffer where its rows are this block's own, or one row per iteration of
    a loop over all rows
TL826 row-index-not-loop-variable error: index rows with the loop variable itself, or use `threads=1`
TL827 row-loop-nonzero-start error: start the row loop at 0
TL828 row-variable-as-value error: use the row variable as an index only, or use `threads=1`
TL829 cube-statement-in-row-loop error: move the cube statement out of the row loop
TL830 unaligned-half error: give the tile a multiple of 512 bytes, or use `threads=1`
TL831 symbolic-rows error: use a constant row count for on-chip buffers and copies
TL832 whole-size-tile-op error: use an operator that `threads=2` can split (`T.copy`, `T.Parallel`, T.tile.add, ...), or
    `threads=1`
TL833 row-reduction error: use `threads=1`, where one vector core reduces all rows
TL834 one-dimensional-reduction error: use `threads=1`, or reduce the last axis of a 2-D tile
TL835 accumulating-first-reader error: copy the received tile to another buffer first and accumulate there
TL836 split-atomic error: add atomically from L0C, or use `threads=1`
TL837 cross-row-op error: use `threads=1`, where one vector core has all rows
TL838 row-view-first error: pass the whole buffer first, or row views only
TL839 tile-outside-of-launch error: allocate the tile inside of `T.Kernel`, or use `threads=1`
TL840 shared-hand-over error: use one on-chip buffer per cross-core transfer
TL841 partial-hand-over error: transfer whole buffers between the cores
TL842 shared-workspace-region error: index the workspace by cid, with the same indices on both sides, and do not read it
    in host code
TL843 hand-over-rank error: transfer 2-D tiles with constant extents
TL844 hand-over-dtype error: cast in UB to the dtype of the L1 buffer before the copy
TL845 hidden-first-reader error: copy the received tile right after the transfer, then use that copy
TL846 conditional-hand-over error: put the copy, its producer and its first reader under one condition
TL847 repeated-buffer-name error: give the buffer of each loop its own name
TL848 one-way-hand-over-loop error: accumulate in L0C and copy once after the loop, or transfer tiles in both directions
    in each iteration
TL849 same-core-exchange error: keep the tile in UB instead of global memory (`threads=1`), or write two kernels
TL850 unnamed-scratch error: rename the tensor to `workspace_*`
TL851 workspace-name-clash error: copy on the chip without the workspace, or rename it to `workspace_keep_*`
TL852 indirect-gather-index error: index the gather directly with an element of a whole-loaded 1-D buffer
TL853 gather-without-parallel error: write one element-wise computation of the kernel as a 2-D `T.Parallel` loop
TL854 processed-gather error: transfer the gathered rows unchanged, or process them in place
TL855 partial-l1-with-parallel error: load the whole L1 buffer with one copy
TL856 hand-over-without-threads error: add `threads=2` to `T.Kernel`
TL857 deep-product-of-wide-types error: split K into parts of at most 128, or pass the right operand transposed
TL858 unaligned-depth error: split K into multiples of 16, at most 128 each, or pad both operands with zeros
TL859 doubled-update warning: launch with `threads=2` and whole tiles, or write `if vid == 0:` around the update
TL860 variable-written-by-vector error: use an expression or a UB element instead of the variable
TL861 scalar-global-store error: collect the values in a UB buffer and store it with `T.copy`
TL862 argumentless-call error: remove the call, or write T.Persistent as a plain loop with an `if`
TL865 ub-condition-around-cube error: move the cube statement out of the condition, or read the value from global memory
TL866 uninferable-buffer-scope error: allocate the buffer with `T.alloc_ub`
TL867 dynamic-loop-names error: give the loops of both cores the same variable name and bounds
TL868 unmatched-sync-count error: write and read the tile the same number of times
TL869 too-many-hand-overs error: transfer fewer tiles between the cores (at most 11 per kernel)
TL870 part-of-a-product error: copy the whole product to UB, and the part from there
TL871 conditional-in-parallel error: use an `if` statement, or compare and select with tile operators
TL872 part-of-an-l1-tile error: load the whole tile by one copy, or use one tile a part
TL873 unfilled-tile error: choose a tile that divides the tensor, or load 16-bit elements
TL874 pipeline-row-elements error: copy the tile to one of this part of the loop first, or use `T.serial`
TL875 pipeline-remainder error: make the trip count a multiple of `num_stages`, or use `T.serial`
TL876 pipeline-dynamic-extent error: use `T.serial` for a loop with a symbolic trip count
TL877 pipeline-shared-state error: update and read the value in one vector stage, or use `T.serial`
TL878 second-cross-core-pipeline error: keep one pipelined loop with cross-core transfers, and use `T.serial` for the
    others
TL879 pipeline-lost-statement error: write the statement in a loop of its own, or use `T.serial`
TL880 negative-out-idx-with-hand-over error: write `out_idx` as a position counted from the front
TL881 symbolic-grid error: pass a workspace tensor of the symbolic size, or launch a fixed number of blocks if tiles go
    both ways
TL882 huge-grid warning: call the kernel for a part of the rows at a time, or loop over the tasks where tiles go both
    ways
TL883 unreachable-call-site error: change the calls by hand: the kernel no longer takes the workspace tensors
TL884 unverified-target info display-only: use the default target, or run the kernel on this one before relying on it
TL885 tile-behind-the-tensor error: end the loop at the end of the tensor, or guard the statement with an `if`
TL886 vector-as-column error: move the elements in a loop: `for i in T.serial(n): x[i, k] = s[i]`
TL887 part-copy-in-parallel error: copy the part with a separate `T.copy`
TL888 vector-in-serial-loop error: use T.tile operators, or a second statement in the serial loop
TL889 unbound-name error: bind the name in the kernel, in its factory or in the module
TL890 row-vector-on-the-left error: write the row vector on the right, or broadcast it to a tile first
TL891 partial-column-parallel error: loop over all columns, or copy the part into a buffer of its own
TL892 column-slice-copy error: copy whole rows, then take the columns with a copy inside UB
TL893 gm-operand-in-parallel error: copy the operand into UB first
TL894 vector-op-on-cube-buffer error: put each tile where its statement runs: UB for vector work, L1 for operands of a
    product, L0C for its result
TL895 scalar-loop-to-global error: collect the values in UB and store them with `T.copy`
TL896 intrinsic-of-expression error: assign the argument first: `t = a - b`, then `y = T.exp(t)`
TL897 dropped-call error: replace the call: the compiler ignores or rejects it
TL898 missing-init error: pass `init=True`, or `init=(k == 0)` in a loop, to the first product
TL899 unaligned-fractal error: pad rows and columns to multiples of 16, and K above 128 to a multiple of 128
"""
