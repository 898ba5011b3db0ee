"""Annotations of a block or a function: layout, address, padding, attributes."""

from __future__ import annotations

from tl2npu.dialects.tables import table

OPERATORS = table("""
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
""")
