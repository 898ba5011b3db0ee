"""``al``: triton-ascend's language extension for its cores (``triton.language.extra.cann.extension``, a84b1eb5)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from tl2npu.interpreter.cores import CUBE, VECTORS, current
from tl2npu.interpreter.shim import sync, tiles
from tl2npu.interpreter.shim.buffers import L0A, L0B, L0C, L1, UB, Buffer, same_shape, to_nz
from tl2npu.interpreter.shim.refused import refused
from tl2npu.interpreter.shim.values import array_of, fault, number, numpy_dtype, plain, tensor_of

ascend_address_space = SimpleNamespace(UB=UB, L1=L1, L0A=L0A, L0B=L0B, L0C=L0C)
PIPE = SimpleNamespace(**{f"PIPE_{name}": f"PIPE_{name}" for name in "S V M MTE1 MTE2 MTE3 FIX ALL".split()})
FixpipeDMAMode = SimpleNamespace(NZ2ND="NZ2ND", NZ2DN="NZ2DN", NZ2NZ="NZ2NZ")
FixpipeDualDstMode = SimpleNamespace(NO_DUAL="NO_DUAL", ROW_SPLIT="ROW_SPLIT", COLUMN_SPLIT="COLUMN_SPLIT")
SYNC_IN_VF = SimpleNamespace(
    **{name: name for name in "VV_ALL VST_VLD VLD_VST VST_VST VS_ALL VST_LD VLD_ST VST_ST SV_ALL ST_VLD".split()}
)
for _name in ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX", "ALL"):
    setattr(PIPE, _name, f"PIPE_{_name}")  # both spellings occur


def fixpipe(
    src: Any, dst: Any, dma_mode: Any = FixpipeDMAMode.NZ2ND, dual_dst_mode: Any = FixpipeDualDstMode.NO_DUAL, **_: Any
) -> None:
    """Move a product from the cube core to UB.

    ROW_SPLIT gives vector core 0 the upper half of the rows and core 1 the lower one, COLUMN_SPLIT the same of the
    columns. NO_DUAL gives a whole matrix to one core, which the front end does not choose: both have it here, as code
    without ``sub_vec_id`` reads it. Raises KernelFault for what the front end refuses, and for a buffer of another type
    than the product, as no conversion is defined for it.
    """
    mode, dual = plain(dma_mode), plain(dual_dst_mode)
    if not isinstance(dst, Buffer) or dst.space is not UB:
        raise fault("al.fixpipe: the destination is a buffer in UB")
    cores = current()
    if cores is not None and cores.core.scope not in (None, CUBE):
        raise fault("al.fixpipe: only the cube core has it, and this is a vector scope")
    if src.dtype != dst.kind:
        raise fault(f"al.fixpipe: a product of {src.dtype} goes to a buffer of {dst.kind}; there is no conversion")
    tile = array_of(src)
    if tile.ndim != 2:
        raise fault(f"al.fixpipe: the product has shape {list(tile.shape)}")
    _aligned(tile, mode, dual)
    axis = {"ROW_SPLIT": 0, "COLUMN_SPLIT": 1}.get(dual)
    if axis is not None and tile.shape[axis] % VECTORS:
        raise fault(f"al.fixpipe: {dual} of {list(tile.shape)}: not an even number")
    pieces = [tile] * VECTORS if axis is None else np.split(tile, VECTORS, axis)
    if cores is not None and cores.scoped and cores.core.kind != CUBE:
        return  # outside of the scopes: the cube core does it
    for number_, part in dst.parts.items():
        piece = pieces[number_] if cores is not None or axis is None else pieces[0]
        laid = to_nz(piece, part.shape) if mode == "NZ2NZ" else piece.T if mode == "NZ2DN" else piece
        same_shape(laid.shape, part.shape, f"{dual} of a product of shape {list(tile.shape)}: a part", "a buffer")
        part[...] = laid


def _aligned(tile: np.ndarray, mode: str, dual: str) -> None:
    """The limits that the front end sets: 32 bits and 16 bits have their own."""
    rows, columns = tile.shape
    if tile.itemsize == 2:
        step = 16
    else:
        step = 32 if dual == "COLUMN_SPLIT" else 8 if mode in ("NZ2ND", "NZ2DN") else 16
    extent = rows if mode == "NZ2DN" and tile.itemsize == 4 else columns
    if mode not in vars(FixpipeDMAMode) or dual not in vars(FixpipeDualDstMode):
        raise fault(f"al.fixpipe: there is no mode {mode}, {dual}")
    if extent % step:
        raise fault(f"al.fixpipe: {mode}, {dual}: {extent} is not a multiple of {step}")


def copy(src: Any, dst: Any, **_: Any) -> None:
    """Copy a buffer in UB to one in UB or L1, of the same shape and type. The layout is not changed."""
    if not (isinstance(src, Buffer) and isinstance(dst, Buffer)) or src.space is not UB or dst.space not in (UB, L1):
        raise fault(f"al.copy goes from UB to UB or L1, not from {src} to {dst}")
    same_shape(src.shape, dst.shape, "al.copy: a buffer", "a buffer")
    if src.kind != dst.kind:
        raise fault(f"al.copy: from {src.kind} to {dst.kind}; there is no conversion")
    cores = current()
    if cores is not None and cores.scoped and cores.core.kind == CUBE:
        if cores.core.scope == CUBE:
            raise fault("al.copy: UB belongs to the vector cores, and this is a cube scope")
        return
    dst.array[...] = src.array


def sort(ptr: Any, dim: Any = -1, descending: Any = False, **_: Any) -> Any:
    """A tensor sorted along its last axis."""
    array = array_of(ptr)
    if number(dim) not in (-1, array.ndim - 1):
        raise fault("al.sort sorts along the last axis")
    result = np.sort(array, axis=-1)
    return tensor_of(result[..., ::-1] if plain(descending) else result, ptr.dtype)


def flip(ptr: Any, dim: Any = -1, **_: Any) -> Any:
    """A tensor in reverse order along an axis."""
    return tensor_of(np.flip(array_of(ptr), number(dim)), ptr.dtype)


def cast(
    input: Any, dtype: Any, fp_downcast_rounding: Any = None, bitcast: Any = False, overflow_mode: Any = None, **_: Any
) -> Any:
    """A tensor in another type. With ``overflow_mode="saturate"`` integers stay inside of theirs."""
    kind, mode = plain(dtype), plain(overflow_mode)
    if mode not in (None, "trunc", "saturate"):
        raise fault(f"al.cast: overflow_mode is {mode!r}, not 'trunc' or 'saturate'")
    target = numpy_dtype(kind)
    if mode == "saturate" and target.kind in "iu" and not plain(bitcast):
        limits = np.iinfo(target)
        wide = array_of(input).astype(np.float64 if array_of(input).dtype.kind not in "iu" else np.int64)
        return tensor_of(np.clip(np.nan_to_num(wide), limits.min, limits.max).astype(target), kind)
    return input.to(kind, fp_downcast_rounding=plain(fp_downcast_rounding), bitcast=plain(bitcast))


def names() -> dict[str, Any]:
    """Every name of the package; older versions had some under another one."""
    space = ascend_address_space
    return {
        "scope": sync.scope,
        "Scope": sync.scope,
        "fixpipe": fixpipe,
        "copy": copy,
        "copy_from_ub_to_l1": copy,
        "sync_block_set": sync.sync_block_set,
        "sync_block_wait": sync.sync_block_wait,
        "sync_block_all": sync.sync_block_all,
        "sub_vec_id": sync.sub_vec_id,
        "sub_vec_num": sync.sub_vec_num,
        "parallel": sync.parallel,
        "multibuffer": sync.nothing,
        "compile_hint": sync.nothing,
        "debug_barrier": sync.nothing,
        "extract_slice": tiles.extract_slice,
        "insert_slice": tiles.insert_slice,
        "get_element": tiles.get_element,
        "sort": sort,
        "flip": flip,
        "cast": cast,
        "PIPE": PIPE,
        "SYNC_IN_VF": SYNC_IN_VF,
        "FixpipeDMAMode": FixpipeDMAMode,
        "FixpipeDualDstMode": FixpipeDualDstMode,
        "ascend_address_space": space,
        "address_space": space,
        **refused("al", "it is code for the device", "custom custom_semantic register_custom_op"),
        **refused(
            "al", "it has no meaning in tl2npu", "index_put gather_out_to_ub scatter_ub_to_out index_select_simd"
        ),
    }
