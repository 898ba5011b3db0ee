"""Stand-ins for ``bisheng``, ``mssanitizer`` and ``msprof``, by the name under which this is started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SANITIZER_OPTIONS = ["-g", "--cce-enable-sanitizer"]
WISHES = os.environ.get("TL2NPU_STANDIN", "").split(",")


def bisheng(args: list[str]) -> int:
    if os.environ.get("TL2NPU_STANDIN_NOW") == "uncompiled":
        print(f"{args[2]}:41:9: error: no matching function for call to 'copy_gm_to_ub'", file=sys.stderr)
        return 1
    if args[-2:] == SANITIZER_OPTIONS and "uninstrumented" in WISHES:
        print("clang: error: unknown argument: '--cce-enable-sanitizer'", file=sys.stderr)
        return 1
    Path(args[args.index("-o") + 1]).write_text("instrumented" if args[-2:] == SANITIZER_OPTIONS else "")
    return 0


def mssanitizer(args: list[str]) -> int:
    options, program = args[: args.index("--")], args[args.index("--") + 1 :]
    named = dict(option.lstrip("-").split("=", 1) for option in options)
    subprocess.run(program, check=False)
    watched = (Path(os.environ["TILELANG_CACHE_DIR"]) / "watched").is_file()
    if "finding" in WISHES and named["tool"] == "racecheck" and watched:
        text = "====== ERROR: Potential RAW hazard detected at UB in main_kernel on device 0:\n"
        text += "======    PIPE_MTE2 Write at RAW()+0x0 in block 0 on device 0 at pc current 0x12c1\n"
        with Path(named["log-file"]).open("a") as log:
            log.write(text * 2)
    return 0  # whatever it has found


def msprof(args: list[str]) -> int:
    assert args[0] == "op"
    options = [arg for arg in args[1:] if arg.startswith("--")]
    named = dict(option.lstrip("-").split("=", 1) for option in options)
    folder = Path(named["output"])
    if folder.stat().st_mode & 0o022 or "refuses" in WISHES:
        print("[ERROR] The output folder is writable by others")
        return 0  # as the real one
    subprocess.run(args[1 + len(options) :], check=False)
    for number in range(int(named["launch-count"])):
        out = folder / "OPPROF_20261123_XXX" / "main_kernel" / str(number)
        out.mkdir(parents=True)
        rows = f"Op Name,Op Type,Task Duration(us)\nmain_kernel,MIX,{10 + number * number}\nCast_1,AIV,9999\n"
        (out / f"OpBasicInfo_{number}.csv").write_text(rows)
    return 0


if __name__ == "__main__":
    sys.exit(globals()[Path(sys.argv[0]).name](sys.argv[1:]))
