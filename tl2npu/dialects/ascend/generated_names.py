"""Names that the generated C++ cannot use for things of the kernel.

The code generators keep the names of the source (``CodeGenC::AllocVarID``) and make way for the keywords of C alone
(``CodeGenC::ReserveKeywordsAsUnique``): ``auto half = ...`` hides the type of every float16 tile behind it.
"""

from __future__ import annotations

TYPES = {"half": "float16", "bfloat16_t": "bfloat16"}
"""Types that the text names (``src/target/codegen_ascend.cc``, ``getType``), with the element type that each is."""

KEYWORDS = frozenset(
    """alignas alignof and_eq auto bitand bitor bool catch char16_t char32_t compl const const_cast constexpr decltype
    delete dynamic_cast explicit export friend inline mutable namespace new noexcept not_eq nullptr operator or_eq
    private protected public reinterpret_cast signed sizeof static static_assert static_cast template this thread_local
    throw typeid typename using virtual volatile wchar_t xor xor_eq""".split()
)
"""Keywords of C++17 that are names in Python, without those that the code generators avoid."""

OF_THE_FUNCTION = frozenset("pipe ascend_l0a ascend_l0b ascend_l1 ascend_l0c ascend_ub fftsAddr ffts_Addr".split())
"""What the generated function declares beside its tensors and tiles (``codegen_ascend.cc``, ``AddFunction``)."""
