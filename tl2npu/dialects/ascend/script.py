"""What the name space inherits from TVM script: control flow in the builder's form, declarations, external calls.

Rare in kernels, all of it opaque to the passes of this program.
"""

from __future__ import annotations

from tl2npu.dialects.ascend.build import BOTH_MODES, EXPERT_ONLY, NO_MODE, operator, plain
from tl2npu.dialects.catalogue import Core, Kind, Operator

_BUILDER = "tvm:script/ir_builder/tir/ir.py"
_OP = "tilelang/language/tir/op.py"
_BUFFER = "elem_offset=None scope='global' align={align} offset_factor=0 buffer_type='{kind}' axis_separators=None"


def _group(
    table: str, file: str, core: Core, modes: frozenset[str], note: str = "", kind: Kind = Kind.SYSTEM
) -> tuple[Operator, ...]:
    rows = (line.split(":") for line in table.strip().splitlines())
    return tuple(
        operator(name, kind, *plain(row[1]), core=core, modes=modes, defined=f"{file}:{name}", note=note)
        for row in rows
        for name in row[0].split()
    )


OPERATORS = (
    *_group(
        """
        If While: condition
        Then Else:
        Assert: condition message
        LetStmt: value type_annotation=None * var=None
        Let: expr where
        let: v value body=None
        evaluate: value
        buffer_store: buffer value indices
        """,
        _BUILDER,
        Core.BOTH,
        BOTH_MODES,
        "TVM script in the builder's form",
    ),
    *_group(
        "has_let_value get_let_value: var",
        "tilelang/language/frame.py",
        Core.NONE,
        NO_MODE,
        "what a name of the script is bound to, while the script is built",
    ),
    *_group(
        f"""
        buffer: shape dtype='float32' data=None strides=None {_BUFFER.format(align=0, kind="")}
        decl_buffer: shape dtype='float32' data=None strides=None {_BUFFER.format(align=0, kind="")}
        match_buffer: param shape=None dtype='float32' data=None strides=None {_BUFFER.format(align=-1, kind="default")}
        buffer_decl: *args
        """,
        _BUILDER,
        Core.NONE,
        BOTH_MODES,
        "declares a buffer",
    ),
    *_group(
        """
        call_intrin call_extern call_pure_extern: dtype func_name *args span=None
        call_llvm_intrin call_llvm_pure_intrin: dtype name *args span=None
        """,
        _OP,
        Core.BY_OPERANDS,
        EXPERT_ONLY,
        "a call past the language; call_extern without a result is silently dropped",
    ),
    *_group(
        """
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
        """,
        _BUILDER,
        Core.NONE,
        NO_MODE,
        "TVM script below the language",
    ),
)
