"""Operators inside expressions: what ``T.ceildiv``, ``T.exp``, ``T.Select`` and their like take.

``T.Parallel`` has vector instructions for exp, log, sqrt, rsqrt and abs of a plain load, and for the operators of the
arithmetic nodes (``src/transform/ascend_lower_parallel_to_vector.cc:38-42, 70-114``); elsewhere the compiler leaves a
mathematical function unresolved (facts 3: g3_expdiff, g3_exp2, g3_log2, g3_tanh, g3_sigm).
"""

from __future__ import annotations

from tl2npu.dialects.tables import table

OPERATORS = table("""
[scalar plain] tilelang/language/tir/op.py
exp log sqrt rsqrt: x # in T.Parallel only alone on a plain load: t = expression; y = function(t)
abs fabs: x span=None # in T.Parallel only alone on a plain load: t = expression; y = function(t)
[scalar nowhere plain] tilelang/language/tir/op.py
exp2 log2 tanh sigmoid: x # rejected by the Ascend compiler: an unresolved call
[scalar nowhere plain] tilelang/language/tir/op.py # no vector instruction in T.Parallel; never tried, taken for
    unresolved as its measured neighbours are
exp10 erf log10 log1p tan cos cosh acos acosh sin sinh asin asinh atan atanh: x
atan2 nextafter hypot copysign ldexp: x1 x2
floor ceil trunc round nearbyint: x span=None
pow: x y span=None
fmod: x y
clz popcount: x
[scalar plain] tilelang/language/tir/op.py
bitwise_and bitwise_or bitwise_xor shift_left shift_right: x y span=None
bitwise_not: x span=None
truncdiv truncmod floordiv floormod: a b span=None
ceildiv: lhs rhs span=None
infinity min_value max_value: dtype span=None
likely: cond span=None
isnan isinf isfinite isnullptr: x span=None
reinterpret: dtype value span=None
if_then_else: cond t f span=None # in T.Parallel the generated source does not compile: use an if statement, or
    compare and select
[scalar plain] tvm:script/ir_builder/tir/ir.py
min max: a b # in T.Parallel with a constant other than 0.0 use tile.max or tile.min
[scalar plain] tvm:tir/expr.py
Select: condition true_value false_value span=None # in T.Parallel the generated source does not compile: use an if
    statement, or compare and select
[scalar plain] tvm:topi/math.py
cast: x dtype span=None
[scalar plain] tvm:tir/expr.py
Cast: dtype value span=None
Add Sub Mul Div Mod FloorDiv FloorMod Min Max EQ NE LT LE GT GE And Or: a b span=None
Not: a span=None
IntImm FloatImm: dtype value span=None
StringImm: value span=None
Var SizeVar: name dtype span=None
BufferLoad: buffer indices span=None
[scalar plain] tilelang/language/__init__.py
symbolic: name dtype='int32' # an extent known at the call only
[scalar plain] tvm:script/ir_builder/tir/ir.py
boolean bool: expr=None is_size_var=False
handle: dtype=None storage_scope='global' * is_size_var=False
void: expr=None * is_size_var=False
Range: begin end
[scalar plain] tilelang/language/proxy.py
ptr: dtype=None storage_scope='global' * is_size_var=False
""")
