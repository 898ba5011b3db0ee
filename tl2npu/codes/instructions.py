"""TL7xx: what single instructions of the NPU ask for: element types, alignment, arguments."""

from __future__ import annotations

from tl2npu.results import Safety, Severity

# fmt: off
ROWS: tuple[tuple[str, str, Severity, Safety, str], ...] = (
    ("TL700", "unaligned-access", "error", "display-only",
     "pad the tile to rows of 32 bytes, load the shifted window from global memory, or copy element by element"),
    ("TL701", "unproved-alignment", "warning", "display-only",
     "assert the condition in the factory: `assert N % 16 == 0`"),
    ("TL702", "copy-at-any-byte", "info", "safe", "copy element by element"),
    ("TL703", "unpadded-rows", "info", "safe", "pad the rows of the tile to 32 bytes"),
    ("TL710", "element-type-without-instruction", "error", "display-only",
     "compute in a type that the instruction has, and convert before and behind"),
    ("TL711", "cast-without-instruction", "error", "display-only",
     "convert in steps that exist, each with a rounding mode that the pair of types has"),
    ("TL712", "half-reciprocal", "warning", "display-only",
     "spread the divisor over a tile and divide tiles, or divide in float32"),
    ("TL720", "unproved-capacity", "warning", "display-only",
     "call the factory in the file, or give its parameters defaults, with sizes that fit"),
    ("TL730", "call-without-signature", "error", "display-only",
     "give the arguments that docs/dialect-ascend.md lists"),
    ("TL731", "lazy-expression", "info", "safe",
     "write it so that every part can be evaluated: the parser of a kernel evaluates all of them"),
    ("TL732", "python-that-is-not-parsed", "error", "display-only",
     "work it out in the factory, in front of the prim_func"),
    ("TL733", "function-in-a-scalar-loop", "error", "display-only",
     "use the operator on the whole tile, such as `T.tile.exp(y, x)`, in front of or behind the loop"),
    ("TL734", "file-that-cannot-be-imported", "error", "display-only",
     "move the kernels that stay for the GPU, with what only they need, into a file of their own"),
    ("TL735", "kernel-beside-one-for-the-gpu", "error", "display-only",
     "give each prim_func a factory of its own, or write the other one for the NPU too"),
    ("TL736", "tensor-of-bool", "error", "display-only",
     "declare the tensor as uint8, compare with 0 in the kernel, and pass `mask.to(torch.uint8)`"),
    ("TL737", "choice-inside-of-a-store", "error", "display-only",
     "write `if condition:` with a store in each arm"),
    ("TL738", "packed-mask-for-pto", "error", "display-only",
     "compile for `ascendc`, or write the condition as an `if` on single elements"),
    ("TL739", "name-keeps-its-old-value", "error", "display-only",
     "use `T.alloc_var`, or another name"),
    ("TL740", "calls-not-looked-at", "info", "display-only",
     "check the sizes behind them by calls of their own, in a file that calls the factory with them only"),
    ("TL750", "operator-in-place", "error", "display-only",
     "give the result a tile of its own, and copy it back"),
    ("TL760", "floor-division-of-negative", "info", "safe",
     "write it so that it rounds down on the NPU as well"),
    ("TL761", "division-rounds-towards-zero", "error", "display-only",
     "divide by `>> k` or `& (n - 1)`, or add a multiple of the divisor first"),
    ("TL762", "integers-compared-as-floats", "error", "display-only",
     "compare in int32, or cast one side to a type of 16 bits or fewer"),
)
# fmt: on
