"""From GPU TileLang to Developer mode: one file per transformation.

:mod:`tl2npu.passes.pipelines` has their order.
"""
