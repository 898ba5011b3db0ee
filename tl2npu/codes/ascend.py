"""Ascend kernels in Expert mode, or with workspaces and vid: TL2xx and TL3xx."""

TABLE = """
TL201 manual-vid-axis info: launch with `threads=2` and bind one name: `as (cid)`
TL202 half-tile-extent info: write the size of the whole tile; `threads=2` halves it per vector core
TL203 vid-offset info: drop the vid term; `threads=2` adds the row offset of each vector core
TL204 vid-only-variable info: remove the name together with its last use
TL206 vid-guard info: drop the guard; `threads=2` gives each vector core its own rows
TL207 allocations-in-one info: allocate each tile in a statement of its own
TL210 gm-round-trip info: copy on chip: `T.copy(source_buffer, target_buffer)`
TL211 workspace-parameter info: remove the parameter; the compiler allocates what an on-chip copy needs
TL212 workspace-idx info: remove `workspace_idx`, or list only the workspaces that stay
TL213 negative-out-idx info: write the position from the front, counted over the parameters that remain
TL214 workspace-call-site info: stop passing the tensor; the kernel no longer has that parameter
TL215 output-as-hand-over info: copy L0C to UB on chip and write the output tensor once, from UB
TL216 unanchored-hand-over info: copy into a new buffer, and copy from that where the result was read
TL218 scratch-not-named-workspace info: name it `workspace_*`; automatic cross-core flags are inserted for that name
    only
TL219 shared-landing-buffer info: allocate one on-chip buffer per cross-core transfer
TL220 vid-as-task error: rewrite the kernel so that vid only splits the rows of a tile, or keep vid without `threads=`
TL221 vid-offset-not-half error: write every vid offset as `vid * (rows // 2)` of its tile
TL222 unused-vid error: split the vector work by rows with `vid * (rows // 2)`, or migrate with `--threads 1`
TL223 mixed-row-roles error: use one buffer for the split rows and another for the replicated rows
TL224 unproved-halves error: make the tile extent an even constant, or write the two halves with the same expressions
TL230 explicit-allocation info: use `T.alloc_shared` for L1 and UB, `T.alloc_fragment` for L0C
TL231 missing-pass-config info: pass the `TL_ASCEND_*` keys that the kernel needs in `pass_configs`
TL232 whole-size-cast info: convert with `T.copy(source, target)`, which is halved under `threads=2`
TL233 whole-size-broadcast info: use the row vector as the right operand in a `T.Parallel` loop
TL234 threads-one info: launch with `threads=1`: one vector core does the whole tile
TL235 own-blocks info: launch a block for each vector core: twice as many, with `threads=1`
TL236 gather-row-loop info: write one of the element-wise row loops as a 2-D `T.Parallel` loop
TL301 manual-mma info: write the product with `T.gemm_v0` on L1 tiles and an L0C accumulator
TL302 explicit-scope info: drop the scope and keep its body; the compiler assigns statements to cores
TL303 manual-barrier info: drop the barrier; automatic synchronisation covers the data flow
TL304 manual-flag info: drop both ends of the flag; automatic synchronisation covers the data flow
TL305 manual-cross-flag info: drop both ends of the flag; automatic synchronisation covers the cross-core data flow
TL306 grid-barrier info: drop the grid barrier; no block reads data of another block
TL307 split-core-loops info: write the cube and the vector statements in one loop
TL308 annotated-address info: drop the annotation; memory planning assigns the addresses
TL309 uncovered-sync error: write a kernel for each phase, transfer data between the cores by one copy per iteration, or
    keep Expert mode
TL310 unmatched-core-loops error: give the cube loop and the vector loop the same bounds and the same name
TL311 experimental-op error: replace the operator, which has no Developer-mode equivalent, or keep Expert mode
TL312 persistent-waves info: loop over the waves, with an `if` for the blocks that have no task left
TL313 batched-loops info: process each tile in one iteration
TL314 slots-in-turns info: keep the previous iteration's value in a separate tile
TL315 unused-factory-parameter info: remove the parameter from the factory and from its calls
TL321 untraced-mma-operand error: load each slot of L0A and L0B just before the mma that reads it, with the same index
    in load and mma
TL323 conditional-mma-operand error: load in every iteration, or in the first iterations only data that the loop does
    not change
TL324 incomplete-mma-slices error: read the L1 tiles in consecutive slices, from 0 to the end
TL325 mma-init-inside-slices error: clear the accumulator in the first slice only: `init=(kk == 0)`
TL326 mma-result-across-slots error: use one accumulator per result, and read it after the last slice
TL327 mma-operand-memory error: copy whole tiles from L1 into L0A and L0B, and use them in `T.mma` only
TL328 mma-element-types error: multiply float16, bfloat16 or float32 into float32, or int8 into int32
TL330 unbalanced-flags warning: wait exactly once for every `set_flag`; what the prologue sets, the epilogue waits for
TL331 product-beyond-l0 error: use smaller tiles: gemm_v0 stages 128 of K at a time, twice where K is longer, in 64 KB
    each of L0A and L0B
TL332 lost-hand-pipelining info display-only: measure both; `--keep-expert` leaves kernels with hand-written pipelines
    as they are
TL333 circular-wait error display-only: set the flag once before the first wait, and wait for it once more at the end
"""
