"""The language's own operators, section by section as the page has them: prose, then a table."""

from __future__ import annotations

from tl2npu.dialects.tables import sections

SECTIONS = sections("""
## memory
Buffer allocation: ``T.alloc_*``.

Scopes: ``shared`` is UB, ``shared.dyn`` and ``shared.l1`` are L1, ``wmma.matrix_a/b/accumulator`` are L0A, L0B, L0C.
``alloc_shared`` becomes L1 or UB by its uses (``src/transform/ascend_infer_buffer_scope.cc``).

[alloc cube expert memory=l1] tilelang/language/allocate.py
alloc_L1: shape dtype
[alloc cube expert memory=l0a] tilelang/language/allocate.py
alloc_L0A: shape dtype
[alloc cube expert memory=l0b] tilelang/language/allocate.py
alloc_L0B: shape dtype
[alloc cube expert memory=l0c] tilelang/language/allocate.py
alloc_L0C: shape dtype
[alloc vector expert memory=ub] tilelang/language/allocate.py
alloc_ub: shape dtype
[alloc by-operands memory=shared] tilelang/language/allocate.py
alloc_shared: shape dtype scope='shared.dyn' # L1 unless a vector operator or a copy on the vector side uses it
[alloc cube memory=fragment] tilelang/language/allocate.py
alloc_fragment: shape dtype scope='local.fragment' # always L0; as an accumulator L0C
[alloc both memory=var] tilelang/language/allocate.py
alloc_var: dtype *args[init,scope] scope='local.var' init=None # one element; a single positional string is the
    scope, anything else the initial value; under AUTO_CV_COMBINE stores to it run on the cube core only
[alloc by-operands] tvm:script/ir_builder/tir/ir.py
alloc_buffer: shape dtype='float32' <data=None strides=None elem_offset=None scope='global' align=-1 offset_factor=0
    buffer_type='default' axis_separators=None # the scope argument names the memory

## transfer
``T.copy``: moves data between two memories, on the core that the memories belong to.

[copy by-operands each] tilelang/language/copy.py
copy@npu_copy_v2: <src >dst enable_relu=False transpose=False pad_value=None # transpose only for L1 -> L0A/L0B;
    pad_value (default 0) fills what a clamped load leaves of UB
[copy nowhere] tilelang/language/copy.py
c2d_im2col: <img >col nhw_step c_step kernel stride dilation pad # GPU only

## matrix
Matrix multiplication on the cube core.

[gemm cube] tilelang/language/ascend.py
gemm_v0: <A <B +C transpose_A=False transpose_B=False init=False kL0Size=128 # A and B in L1, C in L0C; init may be
    an expression such as k == 0; seen as a pure write only for True; kL0Size since 2026-07
[mma cube expert] tilelang/language/customize.py
mma@npu_gemm: <A <B +C init=False # A in L0A, B in L0B, C in L0C
[gemm cube nowhere] tilelang/language/gemm.py
gemm: <A <B +C transpose_A=False transpose_B=False policy=GemmWarpPolicy.Square clear_accum=False k_pack=1 wg_wait=0
    # rejected by the Ascend compiler: use gemm_v0

## tile arithmetic
``T.tile`` operators that compute every element by itself: arithmetic, functions, shifts, clamps.

Sizes: the element count is the product of the extents of the destination (binary, unary) or of the source (scalar
forms, compare); operands must have equal sizes. Operators with a ``count`` parameter process just so many elements.
A whole-index buffer element as ``src1`` (``s[h]``) is read as a scalar by its *first* index only, so ``s[h, 0]`` of a
2-D buffer reads the wrong element (facts 2, g2_scalar).

[tile vector each] tilelang/language/ascend_tile.py
tile.add: >dst <src0 ?src1 = src0 + src1
tile.sub: >dst <src0 ?src1 = src0 - src1
tile.mul: >dst <src0 ?src1 = src0 * src1
tile.div: >dst <src0 ?src1 = src0 / src1
tile.max: >dst <src0 ?src1 = max(src0, src1)
tile.min: >dst <src0 ?src1 = min(src0, src1)
tile.bitwise_and: >dst <src0 ?src1 = src0 & src1 # src1 as a scalar names an operator that is not registered
tile.bitwise_or: >dst <src0 ?src1 = src0 | src1 # src1 as a scalar names an operator that is not registered
tile.bitwise_xor: >dst <src0 <src1 = src0 ^ src1 # no count: works on the allocated sizes
tile.pow: >dst <src0 <src1 = pow(src0, src1) # no count: works on the allocated sizes
tile.exp: >dst <src0 = exp(src0)
tile.ln: >dst <src0 = log(src0)
tile.abs: >dst <src0 = abs(src0)
tile.reciprocal: >dst <src0 = 1.0 / src0
tile.sqrt: >dst <src0 = sqrt(src0)
tile.rsqrt: >dst <src0 = rsqrt(src0)
tile.relu: >dst <src0 = max(src0, 0.0)
tile.bitwise_not: >dst <src0 = ~src0
tile.sigmoid: >dst <src = sigmoid(src)
tile.silu: >dst <src = src * sigmoid(src)
tile.sin: >dst <src = sin(src)
tile.cos: >dst <src = cos(src)
tile.leaky_relu: >dst <src0 scalar_value = select(src0 >= 0, src0, src0 * scalar_value)
tile.axpy: +dst[w] <src0 scalar_value = dst + src0 * scalar_value
tile.mul_add_dst: +dst <src0 <src1 = dst + src0 * src1
tile.bitwise_lshift: >dst <src0 scalarValue = src0 << scalarValue
tile.bitwise_rshift: >dst <src0 scalarValue = src0 >> scalarValue
tile.clamp_max: >out <buffer scalar_value count = min(buffer, scalar_value)
tile.clamp_min: >out <buffer scalar_value count = max(buffer, scalar_value)
tile.clamp: >out <buffer min_scalar max_scalar count = min(max(buffer, min_scalar), max_scalar)
tile.round: >out <buffer count = round(buffer)
[tile vector each] tilelang/language/ascend_tile.py # what the others are made of; taken for whole-size because the
    operator is a string
tile.binary_op: >dst <src0 ?src1 op
tile.unary_op: >dst <src0 op
tile.scalar_op: >dst <src0 scalar_value op_tl

## tile movement
``T.tile`` operators that convert, select, fill, broadcast, or add to global memory.

[fill vector each] tilelang/language/ascend_tile.py
tile.fill: >buffer value
tile.clear: >buffer
[tile vector each] tilelang/language/ascend_tile.py
tile.cast: >dst <src mode count # CAST_NONE, CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC or CAST_ODD
tile.compare: >dst <src0 ?src1 mode # writes a mask of one bit per element of src0; EQ, NE, GT, GE, LT or LE; count
    * itemsize must be a multiple of 256 bytes; an integer literal as src1 is not accepted
tile.select: >dst[r] <selMask <src0 ?src1 selMode # VSEL_CMPMASK_SPR, VSEL_TENSOR_SCALAR_MODE or
    VSEL_TENSOR_TENSOR_MODE; an integer literal as src1 is not accepted
[tile vector row axis=axis] tilelang/language/ascend_tile.py
tile.broadcast: >dst <src axis=None # axis 1: [M, 1] or [M] along the rows; axis 0: [1, N] or [N] to all rows; None:
    the axis of extent 1, for a 1-D src the columns are tried first
[tile vector row] tilelang/language/ascend_tile.py
tile.row_expand_mul: >dst <src0 <src1 ~tmp=None # dst[i, j] = src0[i, j] * src1[i]; src1 is [R], [1, R] or [R, 1]
[tile vector expert row] tilelang/language/ascend_tile.py
tile.row_expand_mul_experiment: >dst <src0 <src1 ~tmp=None # dst[i, j] = src0[i, j] * src1[i]; src1 is [R], [1, R]
    or [R, 1]
tile.row_expand_sub_experiment: >dst <src0 <src1 ~tmp=None # dst[i, j] = src0[i, j] - src1[i]; src1 is [R], [1, R]
    or [R, 1]
tile.row_expand_div_experiment: >dst <src0 <src1 ~tmp=None # dst[i, j] = src0[i, j] / src1[i]; src1 is [R], [1, R]
    or [R, 1]
[atomic by-operands each] tilelang/language/ascend_tile.py
tile.atomic_add: +dst[w] <src # dst in global memory; src in UB (vector core) or L0C (cube core)

## tile order
``T.tile`` operators whose result at one place depends on other places, or on the place itself.

Sorts, gathers, index generators, transposition. None of them may be cut into halves.

[tile vector] tilelang/language/ascend_tile.py
tile.arith_progression: >buffer first_value diff_value count # element i is first_value + i * diff_value of the flat
    buffer
tile.createvecindex: >dst firstValue # element i is firstValue + i of the flat buffer
tile.sort: >dst <src actual_num # descending; dst holds (value, index) pairs, twice the size of src
tile.sort32: >dst <src0 <src1 # sorts blocks of 32 elements; src1 holds the indices
tile.merge_sort: >dst <src0 <src1 <src2=None <src3=None # 2 to 4 sorted runs of (value, index) pairs
tile.topk: >dst <src K actual_num # K (value, index) pairs; src must have a static shape
tile.init_sort_buf: >buffer num rsv
tile.gather: >dst <src <src_offset src_base_addr
tile.gather_mask: >dst <src ?src1Pattern # src1Pattern is a pattern name such as 'P0101' or a uint32 buffer; the
    result is packed
tile.gatherb: >dst <src0 <offset repeat_time dst_blk_stride dst_rep_stride
tile.transpose: >dst <src
[tile vector] tilelang/language/ascend.py
reinterpretcast: >dst <src casttype # dst becomes a view of the bytes of src: later writes to one change the other

## tile blocks
``T.tile`` operators on hardware blocks: masks, repeats and strides; deprecated and ``*_experiment`` ones.

They address the flat buffer by 256-byte repeats, so a changed tile size changes their meaning.

[tile vector expert] tilelang/language/ascend_tile.py # deprecated
tile.wholereducemax tile.wholereducemin: >dst <src mask repeattimes dstrepstride srcblkstride srcrepstride
    ReduceOrder='ORDER_VALUE_INDEX'
tile.wholereducesum: >dst <src mask repeattimes dstrepstride srcblkstride srcrepstride
tile.block_reduce_max tile.block_reduce_min tile.block_reduce_sum: >dst <src repeat mask dstPepStride srcBlkStride
    srcRepStride
[tile vector expert] tilelang/language/ascend_tile.py
tile.brcb: >dst <src repeat_times dst_blk_stride dst_repeat_stride # deprecated; the compiler has no code for it
tile.brcb_experiment: >dst <src repeat_times dst_blk_stride dst_repeat_stride # each source element fills one
    32-byte block
tile.bilinear_interpolation: >dst <src0 <src0_offset <src1 mask h_repeat repeat_mode dst_blk_stride v_r_offset
    v_repeat # deprecated
[tile vector expert each] tilelang/language/ascend_tile.py
tile.sub_experiment: >dst <src0 <src1 count
tile.abs_experiment: >dst <src count
tile.mins_experiment: >dst <src scalarValue count
[tile vector expert] tilelang/language/ascend_tile.py
tile.reduce_sum_experiment: >dst <src count # sum of all elements
tile.reduce_sum_mask_experiment: >dst <src mask repeatTime srcRepStride
tile.gathermask_experiment: >dst <src0 <src1Pattern reduceMode mask GatherMaskParams rsvdCnt # GatherMaskParams:
    src0 block stride, repeats, src0 repeat stride, src1 repeat stride
tile.fill_experiment: >dst value mask/shape repeatTimes dstBlockStride dstRepeatStride # only the first element of
    mask is used
tile.sum_experiment: >dst <src sumParams # sumParams: number of rows, padded row length, real row length
[system by-operands expert] tilelang/language/ascend_tile.py
tile.datacachecleanandinvalid_experiment: >dst CacheLine DcciDst # cleans and invalidates the data cache for dst

## reduce
Reductions of a UB tile, ``T.reduce_*``, and what the name space inherits from the GPU language.

No temporary buffer is passed: the compiler adds it. (Older sources had ``reduce_max(out, buffer, tmp, dim)``, now only
in the unexported ``tilelang/language/pto.py``.) ``dim`` counts 0 or 1 (-2 or -1) of the last two axes.

[reduce vector row axis=dim] tilelang/language/reduce_ascend.py
reduce: <buffer >out reduce_type dim real_shape=None clear=True # reduce_type is 'reduce_max', 'reduce_min' or
    'reduce_sum'; clear=False combines with the old out, but the compiler sees out as written only
reduce_max reduce_min reduce_sum: <buffer >out dim=-1 *args/flag[clear,real_shape] clear=True real_shape=None #
    after dim, a bool is clear and a list or tuple is real_shape; clear=False combines with the old out, but the
    compiler sees out as written only
[reduce nowhere] tilelang/language/reduce.py
reduce_abssum: <buffer >out dim=-1 # GPU only
reduce_absmax: <buffer >out dim=-1 clear=True # GPU only: rejected by the Ascend compiler
cumsum: <src >dst=None dim=0 reverse=False # GPU only: silently dropped by the Ascend compiler; without dst it works
    in place

## sync
Manual synchronisation: flags between the pipes of a core, flags between cores, barriers.

Without buffer arguments, such a statement has no side of its own: under AUTO_CV_COMBINE it follows the statement
before it (``src/transform/ascend_combinecv.cc``). One without any argument (``sync_all``) makes that pass fail.

[sync expert] tilelang/language/ascend.py
set_flag: src/mode dst/mode eventId # pipes: fix, mte1, mte2, mte3, m, v, s
wait_flag: src/mode dst/mode eventId
set_cross_flag: pipe flag mode/scalar=2 # mode 0: all cores of one sort; 1: the two vector cores of a group; 2: cube
    and vector cores of a group
wait_cross_flag: flag pipe='' # pipe is for A5 only
barrier_all: # all pipes of the core; pipe_barrier of 'ALL'
pipe_barrier: pipe
sync_all: # all cores of the grid

## loops
Loops. Under AUTO_CV_COMBINE a loop is kept on every core on which its body is not empty.

[loop both] tilelang/language/tir/ir.py
serial unroll vectorized parallel: start stop=None * annotations=None # one positional argument is the stop
[loop nowhere] tilelang/language/tir/ir.py
thread_binding: start stop=None thread=None * annotations=None # GPU only
[loop both] tilelang/language/tir/ir.py
grid: *extents # nested loops
[loop both] tilelang/language/parallel.py
Parallel: *extents coalesced_width=None # at most two extents; the stores of the body decide the core
[loop both] tilelang/language/pipeline.py
Pipelined: start stop=None num_stages=0 order=None stage=None sync=None group=None cross_interval=1 # one positional
    argument is the stop; the second is the stop, not num_stages
[loop both] tilelang/language/persistent.py
Persistent: domain wave_size index group_size=8 # a domain that the waves do not divide needs a loop_break, which
    AUTO_CV_COMBINE cannot read

## launch
The launch of a kernel, the cores' scopes, and the decorators.

[launch both] tilelang/language/kernel.py
Kernel: *blocks threads=None is_cpu=False prelude=None is_npu=False pipeline=False # with is_npu: one block
    dimension, threads None (binds cid and vid), 1 or 2 (binds cid)
[scalar] tilelang/language/kernel.py
get_block_binding: dim/scalar=0 # variable `dim` of the launch's frame: 0 the block, 1 the vector core, 0 or 1
[scope expert] tilelang/language/warpgroup.py
Scope: name # 'C' is the cube core, 'V' the vector cores
[decorator] tilelang/language/tir/entry.py
prim_func: func=None private=False check_well_formed=True
[decorator] tvm:script/parser/tir/entry.py
macro: *args hygienic=True # its body is inlined where it is called

## annotation
Annotations of a block or a function: layout, address, padding, attributes.

[annotation expert] tilelang/language/__init__.py
annotate_address: address_map # buffer -> byte offset; may let buffers share memory on purpose
annotate_layout: layout_map # buffer -> layout such as zN or nZ
[annotation nowhere] tilelang/language/__init__.py
annotate_padding: padding_map # GPU only
import_source: source=None # GPU only
[sync expert] tilelang/language/__init__.py
init_flag: fmap # sets flags: source pipe -> destination pipe -> event numbers
clear_flag: fmap # waits for flags: source pipe -> destination pipe -> event numbers
[annotation] tvm:script/ir_builder/tir/ir.py
block_attr func_attr: attrs
func_name: name
[annotation nowhere] tvm:script/ir_builder/tir/ir.py
func_ret: ret_type
[annotation expert] tvm:script/ir_builder/tir/ir.py
attr: node attr_key value
[annotation nowhere] tvm:script/ir_builder/tir/ir.py
reads: *<buffer_slices
writes: *>buffer_slices

## debugging
Output from inside a kernel.

[debug both] tilelang/language/ascend.py
printf: format_str *<args # the one call that AUTO_CV_COMBINE keeps on both cores
[debug by-operands] tilelang/language/ascend.py
dump_tensor: <tensor desc dump_size shape_info=() # runs on the core of the tensor's memory, for a tensor in global
    memory on that of the statement before
[debug nowhere] tilelang/language/print.py
print: ?obj msg='' # GPU only: use printf or dump_tensor

## swizzle
The re-ordered block index, which keeps neighbouring blocks in the L2 cache.

[scalar] tilelang/language/__init__.py
use_swizzle npu_use_swizzle: cid m n k block_m block_n off=1 dir=0 in_loop=False # an int32 expression: the
    re-ordered block index

## system
Shared memory between devices (shmem), registers, views, and other operators outside the dialect's core.

[system by-operands expert] tilelang/language/ascend.py
shmem_put_nbi shmem_get_nbi: >dst <src nelems newPe # newPe is the rank of the other device
shmem_ub_put_nbi: <ub >dst nelems newPe strelem=0 # newPe is the rank of the other device
shmem_ub_get_nbi: >dst <src nelems newPe # newPe is the rank of the other device
[system expert] tilelang/language/ascend.py
set_deq_scale: scale # sets a register of the core
[system both expert] tilelang/language/builtin.py
loop_break: # leaves the innermost loop; a call without arguments, which AUTO_CV_COMBINE cannot read
[system] tilelang/language/customize.py
reshape: <src shape # a second name of the same data
view: <src shape=None dtype=None # a second name of the same data
[atomic nowhere] tilelang/language/customize.py
atomic_add atomic_addx2 atomic_addx4: +dst ?value # GPU only: rejected by the Ascend compiler, use tile.atomic_add
[system nowhere] tilelang/language/customize.py
dp4a: <A <B +C # GPU only
[scalar] tilelang/language/customize.py
clamp: dst min_val max_val # an expression, the clamped value: min and max with constants, which T.Parallel cannot
    vectorise
""")
