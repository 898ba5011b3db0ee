# ruff: noqa: E501
"""Mutants that pass and that no rule of ``equivalent`` tells: equivalent, as was found by reading them."""

from __future__ import annotations

SURVIVORS: dict[tuple[str, str], str] = {
    (
        "gpu/alibi_attention",
        "constant: 0.0 -> 1.0 (2)",
    ): "the first turn multiplies the initial value by an exponential that is 0",
    (
        "gpu/biased_attention",
        "constant: 0.0 -> 1.0",
    ): "the first turn multiplies the initial value by an exponential that is 0",
    (
        "gpu/biased_attention",
        "constant: 0.0 -> 1.0 (2)",
    ): "the first turn multiplies the initial value by an exponential that is 0",
    (
        "gpu/decode_two_launches",
        "pass_configs: { tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE ... ANNING: True, } -> {tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: ... UTO_SYNC: True}",
    ): "two kernels without memory planning, which the rules do not trace: their tiles fit side by side",
    (
        "gpu/decode_two_launches",
        "type: accum_dtype -> 'float32' (11)",
    ): "the type that the tile has already; the fixture runs two kernels, which the rules do not trace",
    (
        "gpu/decode_two_launches",
        "type: accum_dtype -> 'float32' (2)",
    ): "the type that the tile has already; the fixture runs two kernels, which the rules do not trace",
    (
        "gpu/eager_attention",
        "constant: 0.0 -> 1.0",
    ): "the first turn multiplies the initial value by an exponential that is 0",
    ("gpu/flash_exp2_lse", "operator: T.ceildiv -> T.floordiv"): "rows of a block are a multiple of its columns",
    (
        "gpu/flash_full_bhsd",
        "launch: 2 -> 1",
    ): "half of the rows for each core; one exponential differs in its last bit",
    (
        "gpu/flash_macros",
        "dropped: for i in T.serial(block_M): T.tile.sub(column_minu ... block_M // 2))) -> pass",
    ): "only the causal mask reads the tile, and these arguments are not causal",
    ("gpu/flash_sink", "type: accum_dtype -> 'float16' (13)"): "the tile holds whole numbers that float16 has",
    ("gpu/mamba_state", "type: \"float32\" -> 'float16' (2)"): "the token that comes back is zeros",
    ("gpu/mamba_state", "type: accum_dtype -> 'float16' (6)"): "the operand is rounded to float16 right behind it",
    (
        "mma/expert_attention",
        "constant: 0.0 -> 1.0",
    ): "the first turn multiplies the initial value by an exponential that is 0",
    ("npuir/window_mask_choices", "comparison: b > 0 -> b >= 0"): "`b * block` is 0 where `b` is 0",
}
