"""Faults of an AI core: what ``errorStr`` says of them, and the bits of the error registers that mean the same.

Source of both: hicann/runtime 681ef7610, ``device_error_core_proc.cc`` (A2, A3), ``v200_base/device_error_proc_c.cc``
(A5). On A2 and A3 ``errcode:(w1, w2, w3)`` are 64-bit words. Bit b of w1 is b here, of w2 64 + b, of w3 128 + b below
bit 17 and 113 + b from bit 32 on. On A5 ``errcode:(n, ...)`` are the numbers of the bits.
"""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.errors.entry import Row

_HERE = "hicann/runtime src/runtime/core/src/device/device_error_core_proc.cc"
_A5 = f"{_HERE}; v200_base/device_error_proc_c.cc"

# fmt: off
ROWS: tuple[Row, ...] = (
    ("ub-out-of-bounds", "cause", "TL801 TL832 TL825 TL721",
     ("the ub address out of bounds", "The address for the VEC instruction to read/write UB is out of bounds",
      "The access address of the UB is out of range", "The address for VEC to access UB is out of bounds"),
     "errorStr: VEC instruction error: the ub address out of bounds. fixp_error0 info: 0x3001a20",
     "a vector instruction reads or writes behind the end of UB. The tiles do not fit, a count is larger than the "
     "tile, or a helper takes scratch for itself",
     "`tl2npu check` for the sum of the tiles and for counts; `T.tile.sum_experiment` needs room beside them",
     f"{_A5}; tile-ai/tilelang-ascend#159, #1523, #1192"),
    ("ub-unaligned", "cause", "TL700 TL701 TL703 TL830",
     ("The UB address accessed by the VEC instruction is not aligned",
      "The instruction access UB address is not aligned",
      "The address for VEC to access UB is not aligned"),
     "errorStr: The UB address accessed by the VEC instruction is not aligned.",
     "a vector instruction begins at an address in UB that is not a multiple of 32 bytes",
     "pad the rows of the tile to 32 bytes, and start parts of it there", _A5),
    ("illegal-instruction", "cause", "TL700 TL884",
     ("Illegal instruction, which is usually caused by unaligned", "The scalar instruction is abnormal",
      "The instruction is not defined in ISA", "The VEC instruction is abnormal", "The CUBE instruction is abnormal",
      "The loop count of the hardware loop instruction is 0",
      "The loopend instruction is executed before executing loop",
      "The instruction in VEC VF is abnormal", "The non-VF instruction is abnormal", "The operation code is illegal"),
     "errorStr: Illegal instruction, which is usually caused by unaligned UUB addresses. fixp_error0 info: 0x600009a",
     "a core meets an instruction that it does not know. Most often an address in UB is unaligned; else the program "
     "is for another generation (A5 runs no code for A2), or was overwritten",
     "check alignment, then the target and the version of CANN",
     f"{_A5}; tile-ai/tilelang-ascend#1310, #1830; hw-native-sys/PTOAS, pull request 937"),
    ("vector-parameter", "cause", "",
     ("The VEC instruction parameter is invalid", "The instruction configuration of VEC is illegal",
      "The parameter of the VEC VF instruction is invalid", "The parameter of the non-VF instruction is invalid"),
     "errorStr: The VEC instruction parameter is invalid.",
     "a vector instruction got a count, stride or repeat that it does not take",
     "look at operators with a count, a stride or a repeat of their own",
     f"{_A5}; vllm-project/vllm-ascend#5661"),
    ("mask-zero", "cause", "",
     ("the MASK instruction is all 0", "The mask value is invalid"),
     "errorStr: VEC instruction error: the MASK instruction is all 0.",
     "a vector instruction works on no element", "guard the operator where its count may be 0", _HERE),
    ("same-destination", "cause", "",
     ("the destination blocks have the same address",),
     "errorStr: VEC instruction error: the destination blocks have the same address.",
     "a vector instruction writes several blocks to one address", "give its destination a stride", _HERE),
    ("ub-conflict", "cause", "TL908",
     ("The address for VEC to read UB confilicts", "ub read/write conflict", "UB read/write conflict",
      "UB read and write conflict"),
     "errorStr: The address for VEC to read UB confilicts that for VEC to write UB.",
     "two instructions read and write the same place in UB at a time", "wait between them; `tl2npu run` names them",
     _HERE),
    ("vector-number", "cause", "TL944",
     ("the data is inf or nan", "The input data of the instruction operation is INF/NAN",
      "the value of ln is a negative number", "the reciprocal of the square root is a negative number",
      "reciprocal division by 0 error", "divide-by-zero error", "Divide-by-zero error",
      "operation is a negative number"),
     "errorStr: VEC instruction error: the data is inf or nan.",
     "a vector instruction met infinity, NaN, a logarithm or root of a negative number, or a division by 0",
     "look for data that is read before it is written; clamp the argument", _A5),
    ("vector-timeout", "symptom", "TL941",
     ("The instruction running timeout", "VEC VF execution timeout"),
     "errorStr: The instruction running timeout.",
     "a vector instruction does not end", "look for loops without end, and for flags", _A5),
    ("sort-input", "cause", "",
     ("The input data of the sorting instruction is not correctly sorted",),
     "errorStr: The input data of the sorting instruction is not correctly sorted.",
     "`T.tile.merge_sort` merges lists that are not sorted", "sort each list first",
     "hicann/runtime src/runtime/core/src/device/v200_base/device_error_proc_c.cc"),
    ("gm-invalid", "cause", "TL885 TL178 TL603",
     ("MTE accesses an invalid GM address", "The DDR address of the MTE instruction is out of range",
      "MTE instruction accesses an invalid GM address", "MTE DDR address out of range",
      "SIMT accesses an invalid GM address", "The address for fixpipe to write GM is invalid"),
     "errorStr: MTE accesses an invalid GM address or the cross-device memory access times out.",
     "a copy from or to a tensor uses an address that is not mapped. An index is out of range, or the tensor is on the "
     "host or freed",
     "check gathered indices and the last tile; `--sanitize memcheck` names the access",
     f"{_A5}; hw-native-sys/PTOAS#482"),
    ("gm-scalar", "cause", "TL885 TL178",
     ("The scalar instruction accesses an invalid GM address", "The address for scalar to access GM is invalid",
      "CCU instruction address check error", "The GM address accessed by scalar exceeds 48 bits",
      "The address for scalar to use is unaligned or out of bounds"),
     "errorStr: The scalar instruction accesses an invalid GM address or the cross-device memory access times out.",
     "a single element of a tensor (`A[i]`) is read or written outside of it", "check the index",
     f"{_A5}; vllm-project/vllm-ascend#2763, #3263"),
    ("gm-wide", "cause", "TL885",
     ("The GM address accessed by FIXP exceeds 48 bits", "The address for VEC to read GM is out of bounds"),
     "errorStr: The GM address accessed by FIXP exceeds 48 bits.",
     "the address that a product is stored to is not an address", "check the index of the store", _A5),
    ("bus", "cause", "TL885",
     ("Bus read access error", "Bus write access error"),
     "errorStr: Bus read access error. You are advised to check the L2 code.",
     "an access to global memory failed on the bus", "check indices first; without a fault there ask for the hardware",
     _HERE),
    ("chip-transfer-bounds", "cause", "TL801 TL872 TL885",
     ("The address for the MTE instruction to read on-chip buffer is out of bounds",
      "The address for the MTE instruction to write on-chip buffer is out of bounds",
      "The read address of the mte load2d instruction", "The write address of the mte load2d instruction",
      "The address for MTE to write UB is out of bounds", "The address for MTE to read UB is out of bounds",
      "The address for MTE2 to", "The address of the MTE 2D instruction to", "The address of the LOAD2D instruction",
      "The address for the MTE instruction to", "The address for MTE to move from L1 to UB is out of bounds",
      "The write address of the MTE instruction is out of range"),
     "errorStr: The address for the MTE instruction to write on-chip buffer is out of bounds.",
     "a copy reads or writes behind the end of a memory on the chip", "tiles do not fit, or a start or length is off",
     _A5),
    ("transfer-unaligned", "cause", "TL700 TL711",
     ("The access address of the MTE instruction is not aligned",
      "The MTE non-atomic instruction address is not aligned",
      "The MTE instruction address is not aligned"),
     "errorStr: The access address of the MTE instruction is not aligned with the data type bit width.",
     "a copy has an address that is not a multiple of its element, or of 32 bytes on the chip",
     "look at views of other element types, and at starts within a row", _A5),
    ("transfer-parameter", "cause", "TL892",
     ("The MTE instruction parameter is invalid", "The burst length of the mte instruction is incorrect",
      "The burst num of the mte command is incorrect", "The MTE instruction is abnormal",
      "value of the MOV instruction is"),
     "errorStr: The burst length of the mte instruction is incorrect.",
     "a copy has a length, count or stride that the instruction does not take",
     "look at copies with run-time lengths, and of columns", _A5),
    ("atomic-unaligned", "cause", "TL836 TL173",
     ("The address of the MTE atomic instruction is not aligned", "The MTE atomic instruction address is not aligned"),
     "errorStr: The address of the MTE atomic instruction is not aligned with the data type bit width.",
     "an atomic addition begins at an address that is not a multiple of its element",
     "start at a multiple of the element",
     _A5),
    ("transfer-timeout", "symptom", "TL941",
     ("An exception is reported when the MTE instruction or data times out",
      "The bus is busy, and the response times out"),
     "errorStr: An exception is reported when the MTE instruction or data times out.",
     "a copy does not end", "look for flags that are never set, then for the hardware", _A5),
    ("l0-out-of-bounds", "cause", "TL801 TL331",
     ("The operation address of L0", "The address for CUBE to operate L0", "matrix(matmul) exceeds L1",
      "Cube result addr exceeds L1"),
     "errorStr: The operation address of L0C exceeds the maximum range of L0C.",
     "the operands or the result of a gemm do not fit into L0A, L0B or L0C", "use smaller tiles, or split K", _A5),
    ("l0-conflict", "cause", "TL908 TL326",
     ("L0A read/write conflict", "L0B read/write conflict", "L0C read/write conflict",
      "Ping/Pong memory allocation scheme",
      "confilicts with that for CUBE to write L0C", "conflicts with that for CUBE to"),
     "errorStr: L0C read/write conflict(vec read operation or cube write operation).",
     "a tile of the cube core is read while it is written: a flag is missing around `T.mma` or its loads",
     "wait for the mma before the next load, or use `T.gemm_v0`", _A5),
    ("cube-number", "cause", "TL944",
     ("The data of L0a and L0b read back is the INF or NAN data", "the data read back from L0a and L0b are INF or NAN"),
     "errorStr: The data of L0a and L0b read back is the INF or NAN data.",
     "a gemm reads infinity or NaN",
     "look for operands that are read before they are loaded, and for masks of minus infinity", _A5),
    ("cube-parameter", "cause", "TL328 TL899",
     ("The CUBE instruction parameter is invalid", "The instruction configuration of CUBE is illegal",
      "The CUBE instruction address misalign"),
     "errorStr: The CUBE instruction parameter is invalid.",
     "a gemm has sizes or element types that the cube core does not take",
     "use multiples of 16, float16, bfloat16 or float32 into float32, int8 into int32", _A5),
    ("fixpipe-bounds", "cause", "TL801 TL872 TL885",
     ("for FIXP to read L0C is out of bounds", "for FIXP to read L1 is out of bounds", "for FIXP to write L1 is out of",
      "for FIXP to write UB is out of", "for FIXP to read UB is out of", "for fixpipe to write L1 is out of",
      "for fixpipe to read L1 is out of", "for fixpipe to read L0C is out of", "for fixpipe to write UB is out of",
      "An overflow error occurs when the FIXP write", "FIXP buffer is out of bounds", "FBUF is out of bounds"),
     "errorStr: The address for FIXP to read L0C is out of bounds.",
     "the copy of a product from L0C reads or writes behind the end of a memory", "copy the whole product, or less",
     _A5),
    ("fixpipe-unaligned", "cause", "TL899 TL711",
     ("The address for FIXP to read L0C/L1 and write FIXP buffer is not aligned",
      "The parameter of the FIXP instruction is",
      "The fixpipe instruction parameter is invalid", "The address for fixpipe to read L0C, read/write L1"),
     "errorStr: The parameter of the FIXP instruction is invalid.",
     "the copy of a product from L0C has sizes or types that it does not take",
     "use multiples of 16, and a supported cast",
     _A5),
    ("flag-counter", "cause", "TL941 TL562 TL908",
     ("flag counter for inter-core communication exceeds",
      "The accumulated value of the inter-core communication flag counter",
      "error occurs in the CUBE HSET counter", "HWATI/HSET"),
     "errorStr: The value of the flag counter for inter-core communication exceeds the maximum value 15.",
     "a cross-core flag is set more than 15 times before anyone waits for it",
     "wait once for each set, in each iteration",
     _A5),
    ("scalar-bounds", "cause", "TL894 TL885",
     ("The MPU address access is invalid",
      "The address for the scalar to access the internal buffer of AICore is out of bounds",
      "The address for scalar to read/write UB is out of bounds",
      "The address for scalar to access the internal buffer is out of bounds"),
     "errorStr: The address for scalar to read/write UB is out of bounds.",
     "a single element (`x[i, j]`) lies behind the end of a memory on the chip, or in one that this core does not have",
     "check the index, and that vector code touches no L1 or L0 and cube code no UB",
     f"{_A5}; triton-lang/triton-ascend#494"),
    ("scalar-number", "cause", "",
     ("Division by 0 error", "The number of roots is negative", "FP32 DIV0", "run by the CCU is nan/inf",
      "FP SQRT calculation unit is a negative number", "errorStr: divide by 0"),
     "errorStr: Division by 0 error.",
     "scalar code divides by 0, or takes a root of a negative number", "check run-time divisors of indices", _A5),
    ("scalar-atomic", "cause", "",
     ("The scalar atomic instruction accesses the GM that is modified by scalar",),
     "errorStr: The scalar atomic instruction accesses the GM that is modified by scalar but is not written back.",
     "scalar code stores to a tensor and adds to it atomically", "do one of the two in vector code", _A5),
    ("code-unmapped", "cause", "",
     ("The address of instruction is illegal when the AIcore reads instructions from GM",),
     "errorStr: The address of instruction is illegal when the AIcore reads instructions from GM.",
     "the code of the kernel is gone: its library was unloaded before the launch ended, or the stack was overwritten",
     "keep the compiled kernel alive until the device is synchronised", _A5),
    ("trap", "cause", "TL940",
     ("The trap instruction reports an error",),
     "errorStr: The trap instruction reports an error.",
     "the kernel stopped itself: an assertion of AscendC, or a sanitizer", "read the lines that the kernel printed",
     "hicann/runtime src/runtime/core/src/device/v200_base/device_error_proc_c.cc"),
    ("timeout-or-trap", "symptom", "TL941 TL848 TL846",
     ("timeout or trap error",),
     "The extend info: errcode:(0, 0, 0) errorStr: timeout or trap error. fixp_error0 info: 0x3000030",
     "no error bit is set. The core waits, most often for a flag that the other core never sets, or loops without end",
     "`tl2npu run` finds the flag; for Developer mode `tl2npu check` has TL846 and TL848",
     f"{_A5}; hw-native-sys/PTOAS, pull requests 704, 720"),
    ("simt-stack", "cause", "",
     ("The VEC SIMT stack overflows", "The dyn ubuf size is greater than", "VEC SIMT DVG stack overflows"),
     "errorStr: The VEC SIMT stack overflows. Possible cause: The local variable is too large",
     "a SIMT kernel of A5 has more local data or deeper branches than there is room for",
     "use fewer and smaller locals",
     "hicann/runtime src/runtime/core/src/device/v200_base/device_error_proc_c.cc"),
    ("hardware-memory", "cause", "",
     ("multi-bit ECC error", "Multi-bit ECC error", "ECC is reported in", "parity error", "See the RAS alarm handling",
      "uncorrectable ECC"),
     "errorStr: A multi-bit ECC error occurs when VEC reads UB. See the RAS alarm handling.",
     "the hardware lost bits; no kernel is to blame", "look at `npu-smi info -t ecc`, and use another card", _A5),
)

_BITS = """
    bus: 0 1
    scalar-number: 3 7 72 97 98
    illegal-instruction: 4 5 6 77
    hardware-memory: 8 10 13 16 40 43 44 45 55 60 64 94 95 96 109 110 112 113 123 137 138 143 155 170 172 175
    cube-number: 9
    l0-conflict: 11 14 17 18 38 39 56 144
    l0-out-of-bounds: 12 15 19
    code-unmapped: 20
    gm-invalid: 23
    transfer-parameter: 30 31 116
    chip-transfer-bounds: 32 33 42 48 124 125
    vector-number: 52 54 57 58 156 157 158 159
    mask-zero: 53 152
    same-destination: 59
    ub-conflict: 61 129 130 133 134
    ub-out-of-bounds: 62 154
    atomic-unaligned: 74
    ub-unaligned: 75 151
    vector-parameter: 76 150
    gm-scalar: 78 79
    transfer-unaligned: 80
    fixpipe-unaligned: 100 101
    fixpipe-bounds: 102 103 104 105 106 107 108 142
    flag-counter: 111 114 115 140
    scalar-bounds: 121 135
    cube-parameter: 126
    transfer-timeout: 128
    scalar-atomic: 139
    gm-wide: 141
    vector-timeout: 148
    illegal-instruction: 149
"""

_BITS_A5 = """
    l0-conflict: 0 1 2 68 69 128 129 172
    cube-number: 4
    l0-out-of-bounds: 5 6 7 35 38 41
    hardware-memory: 8 9 10 15 16 64 65 66 67 90 91 92 93 94 160 162 171 176 181 193 194 261 265 266 269 273 277 278 287
    hardware-memory: 75 87 88 335 342 346 347 348 349 358 359 360 361 362 363 364
    illegal-instruction: 11 32 259 327 330
    flag-counter: 12 13 175 276
    cube-parameter: 33 34
    transfer-unaligned: 71 80 180
    chip-transfer-bounds: 73 74 81 82 130 131 174 177 178
    transfer-parameter: 78 83 84 179
    atomic-unaligned: 79
    gm-invalid: 95 161 334
    fixpipe-bounds: 14 163 164 165 166 167 168 173
    fixpipe-unaligned: 169 170
    transfer-timeout: 195
    code-unmapped: 256
    scalar-number: 258 260 262 267 268
    gm-scalar: 263 264
    scalar-bounds: 271
    scalar-atomic: 275
    trap: 286
    vector-timeout: 326
    vector-parameter: 328 331
    vector-number: 336 337 338 339
    ub-unaligned: 340
    ub-out-of-bounds: 341
    sort-input: 343
    simt-stack: 353 354 356
    gm-wide: 355
"""
# fmt: on


def _table(text: str) -> dict[int, str]:
    lines = (line.strip().split(": ") for line in text.strip().splitlines())
    return {int(bit): key for key, bits in lines for bit in bits.split()}


BITS, BITS_A5 = _table(_BITS), _table(_BITS_A5)
"""Number of a bit -> key of the row that says what it means; only bits that say something."""


def words(values: list[int]) -> Iterator[int]:
    """The numbers of the bits that are set in the words of A2 and A3, lowest first."""
    for index, value in enumerate(values[:3]):
        for bit in range(64):
            if value >> bit & 1:
                if index < 2 or bit < 17:
                    yield 64 * index + bit
                elif bit >= 32:
                    yield 145 + bit - 32
