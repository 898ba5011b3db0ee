"""What the name space inherits from TVM script: control flow in the builder's form, declarations, external calls.

Rare in kernels, all of it opaque to the passes of this program.
"""

from __future__ import annotations

from tl2npu.dialects.tables import table

OPERATORS = table("""
[system both plain] tvm:script/ir_builder/tir/ir.py # TVM script in the builder's form
If While: condition
Then Else:
Assert: condition message
LetStmt: value type_annotation=None * var=None
Let: expr where
let: v value body=None
evaluate: value
buffer_store: buffer value indices
[system nowhere plain] tilelang/language/frame.py
has_let_value get_let_value: var # what a name of the script is bound to, while the script is built
[system plain] tvm:script/ir_builder/tir/ir.py # declares a buffer
buffer decl_buffer: shape dtype='float32' data=None strides=None elem_offset=None scope='global' align=0
    offset_factor=0 buffer_type='' axis_separators=None
match_buffer: param shape=None dtype='float32' data=None strides=None elem_offset=None scope='global' align=-1
    offset_factor=0 buffer_type='default' axis_separators=None
buffer_decl: *args
[system by-operands expert plain] tilelang/language/tir/op.py
call_intrin call_extern call_pure_extern: dtype func_name *args span=None # a call past the language; call_extern
    without a result is silently dropped
call_llvm_intrin call_llvm_pure_intrin: dtype name *args span=None # a call past the language; call_extern without a
    result is silently dropped
[system nowhere plain] tvm:script/ir_builder/tir/ir.py # TVM script below the language
block: name='' no_realize=False
init:
where: predicate
arg: name obj
realize: buffer_slice storage_scope condition=True
allocate: extents dtype scope='global' condition=None annotations=None
allocate_const: data dtype extents annotations=None
launch_thread: thread extent
env_thread: thread_tag dtype='int32'
prefetch: buffer bounds
customized_code: code
var: dtype name=''
buffer_var: dtype storage_scope='global'
iter_var: v dom iter_type thread_tag
comm_reducer: combiner identity
index_map: mapping * inverse_index_map=None
target: target_config host=None
meta_var: value
""")
