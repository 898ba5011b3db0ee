"""Triton kernels, those for the cores of A5 and FlagTree's TLE too: TL5xx, and TL77x for those that stay."""

TABLE = """
TL501 triton-kernel info: write a TileLang factory with one `T.prim_func`, and call it where the kernel was launched
TL502 assumed-contiguity info display-only: pass contiguous tensors: strides are gone from the kernel
TL503 assumed-sizes info display-only: keep the assertion before the launch
TL504 dropped-tuning warning: tune the block sizes on the NPU, for instance with `tilelang.autotune`
TL505 assumed-element-type warning: call the wrapper in the file with a tensor of the type, or allocate it there with
    `dtype=`
TL506 one-row-per-block info display-only: migrate with `--rows-per-block N`, as many rows as fit the unified buffer
TL507 compiled-kernel-query info: choose the grid by the work there is: the compiler for the NPU spreads it over the
    cores
TL508 rows-in-memory info display-only: address the tensor by its own strides, from a line such as `M, N = x.shape`
TL509 assumed-environment warning: if the variable is set where the kernel runs, write the function that it chooses
    without a condition
TL510 unlaunched-triton-kernel error: launch the kernel by its own name, in its file or in one that imports it
TL511 unclear-launch error: pass the grid as a tuple of integers and every argument by itself
TL512 unclear-pointer error: load and store through pointers that are tensor arguments of the kernel
TL513 triton-mixed-element-types error: leave the parameter that has the type as it is, or write one wrapper for each
    element type
TL514 computed-configuration error: write the values out, pass them at the launch, or give them by `--tuned NAME=VALUE`
TL520 irregular-address error: address tiles by a start and consecutive elements along each axis
TL521 unproved-stride error: take shape and strides from one contiguous tensor: `M, N = x.shape`, `x.stride(0)`
TL522 mask-beside-extent error: pass a tensor that ends where the mask ends
TL523 gathered-address error: load rows in a loop, each from the address that is one loaded integer
TL525 tile-rank error: use tiles of one or two axes
TL530 unsupported-triton-operator error: compute it with operators that TileLang has
TL531 triton-scan error: compute the running sum on the host
TL532 triton-sort error: sort or search on the host
TL533 triton-random error: draw the numbers on the host and pass a tensor
TL534 triton-inline-assembly error: write it with operators of Triton
TL535 triton-atomic error: use `tl.atomic_add` of floats, or reduce on the host
TL536 own-reduction error: use `tl.sum`, `tl.max` or `tl.min`
TL537 tile-reshape error: load the tile in the shape in which it is used
TL538 tensor-descriptor error: pad with zeros, and give one offset for each axis
TL539 float8-tile error: use float16 or bfloat16
TL540 while-loop error: write a `for` loop over a range
TL541 irregular-loop-value error: carry tiles of one shape and type, and move pointers by the same amount in each
    iteration
TL542 branch-on-data error: use `tl.where`
TL543 unsupported-triton-python error: write it with plain assignments, `if` and `for`
TL544 uninlinable-device-function error: define the device function in the file or in a module of the repository,
    without recursion
TL545 value-by-branch error: give the name its value without a branch
TL546 truncation error: show that the operand is not negative, or convert to 32 bits
TL547 mixed-transposition error: load the tile in the orientation in which it is used
TL548 unsupported-dot error: multiply two matrices whose inner size has one name
TL549 mixed-tile-ranks error: give both tiles the same axes and extents
TL550 unresolved-constant error: pass the constant as a number at the launch
TL560 undecorated-kernel error: decorate the kernel with `@triton.jit`, or write `kernel = triton.jit(kernel)` in the
    module
TL561 unordered-buffer error: set an event behind the write, or behind the last read, and wait for it on the other core
TL562 unpaired-event error: set each event as often as the other core waits for it, in each turn of a loop
TL563 hand-pipeline error: write the serial kernel: one buffer and one event for each step
TL564 unequal-event-loops error: give the loops of both scopes the same range
TL565 unsupported-fixpipe error: use `NZ2ND` with `ROW_SPLIT` and convert the tile on the vector side
TL566 unclear-chip-buffer error: give each buffer the shape of its tile and copy it as a whole, each vector core its
    half of the rows
TL567 unequal-vector-cores error: let each vector core do the same work on its half of the rows
TL568 value-across-cores error: hand the value over in a buffer of `bl.alloc`
TL569 unsupported-ascend-operator error: use scopes, events and copies of tiles
TL580 tle-device-mesh error: write the kernel for one device, and launch it on each
TL581 tle-sharding error: pass each device its part of the tensor as a tensor
TL582 tle-reshard error: exchange the parts on the host, with `torch.distributed`, between two launches
TL583 tle-remote error: copy the other device's tensor on the host, with `torch.distributed`, before the launch
TL584 tle-shard-id error: pass the rank as an argument of the kernel
TL585 tle-distributed-dot error: multiply whole tiles with `tl.dot` in one block
TL586 tle-distributed-barrier error: end the kernel there, and launch a second one
TL587 tle-pipe error: write the stages one after the other in one loop
TL588 tle-raw error: write it with operators of Triton
TL589 tle-warps error: use `tl.dot` and plain loops
TL590 tle-scattered-index error: address memory on the chip by a start and consecutive elements along each axis
TL591 tle-mismatched-memory error: allocate memory of the type and shape of what is copied, and convert tensors with
    `.to`
TL592 tle-foreign-memory error: use `tle.gpu.smem` or the memories of `tle.dsa.ascend`
TL593 dropped-tle-hint warning: check the pipeline on the NPU: stages are those of `num_stages`
TL594 tle-gpu-memory info: write the same with the buffers of `tle.dsa`
TL595 tle-without-dsa error: write whole buffers or slices, and read a buffer again after it is written
"""
