"""Stand-ins for the language extensions of Triton: triton-ascend's ``al`` and ``bl``, FlagTree's ``tle``.

Semantics were read in triton-lang/triton-ascend a84b1eb5 (``third_party/ascend/language/cann/extension``,
``python/triton/extension/buffer/language``), flagos-ai/FlagTree bb1dc455 (``python/triton/experimental/tle``) and
Ascend/AscendNPU-IR 52f96a13 (the modes of fixpipe). ``buffers`` is memory on the chip; ``ascend``, ``buffer_language``,
``tle``, ``gpu`` and ``dsa`` are the names of one package each; ``modules`` puts them where ``import`` finds them.
"""
