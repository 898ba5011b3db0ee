"""Hand-written mma pipelines become ``gemm_v0``, one for each product of two tiles in L1.

The steps, in the order in which :mod:`tl2npu.passes.ascend.mma.products` takes them: tiles that are fetched an
iteration ahead are fetched where they are used (``prefetch``), every ``mma`` is traced to the tiles in L1 that its
operands were copied from (``staging``), the loop over slices of K goes (``slices``), the depth of the tiles in L1 is
chosen so that the product fits L0 (``depth``), buffers lose the axis of their slots (``slots``), a memory that holds
several results in turn becomes several buffers (``accumulators``).
"""
