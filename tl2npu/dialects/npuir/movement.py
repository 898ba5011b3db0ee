"""Copies, fills, and operators that move elements about.

A copy casts where the types differ (Developer mode). Slices and ``size=`` exclude each other; an operand that is given
by a start index takes its extents from ``size=`` or from the other side, which then is a whole tile or a slice.
"""

from __future__ import annotations

from tl2npu.dialects.npuir.build import trailing
from tl2npu.dialects.tables import table

OPERATORS = (
    *table("""
[copy by-operands] tilelang/language/copy.py
copy: <src >dst coalesced_width=None size=None
    # the third position is not a size; not between two tensors in global memory
[fill vector] tilelang/language/customize_npuir.py
vbrc npuir_brc: ?src >dst # src: [M, 1], [1, N] or a value of the language; a bare Python number is rejected
fill npuir_fill: >buffer value # value: of the language; a bare Python number is rejected
clear npuir_clear: >buffer
arange npuir_arange: >dst strides offset=0
[tile vector] tilelang/language/customize_npuir.py
gather npuir_gather: <src >dst <indices size=None # along the last axis
transpose npuir_transpose: <src >dst permutation size=None
pad npuir_pad: <src >dst pad_value low high size=None # one axis only
flip npuir_flip: <src >dst axis size=None
reshape npuir_reshape: <src >dst
deinterleave npuir_deinterleave: <src >dst0 >dst1=None * channel_nums=2 index_mode='ALL_CHANNELS' size=None
"""),
    *trailing("""
[tile vector] tilelang/language/customize_npuir.py
interleave npuir_interleave: <srcs >dst * channel_nums=2 size=None # two sources
concat npuir_concat: <srcs >dst dim * size=None # the one operator whose last argument is not the destination
"""),
    *table("""
[atomic by-operands] tilelang/language/customize_npuir.py
atomic_add npuir_atomic_add: +dst <src size=None # the destination is first, as in the GPU language
atomic_addx4 npuir_atomic_addx4: +dst <src size=None # the same as atomic_add
[copy cube expert] tilelang/language/customize_npuir.py
load_nd2nz npuir_load_nd2nz: <src >dst size=None
store_nz2nd npuir_store_nz2nd: <src >dst size=None
store_fixpipe npuir_store_fixpipe: <src >dst size=None enable_nz2nd=False channel_split=False pre_relu_mode=''
"""),
)
