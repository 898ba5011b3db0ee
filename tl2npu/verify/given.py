"""The settings of a verification that a command line gives."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tl2npu.options import Options
from tl2npu.verify.calls import parse_assignments, parse_call, parse_symbols, read_case
from tl2npu.verify.settings import Settings, UsageError


def settings_of(given: Mapping[str, Any], options: Options) -> Settings:
    """The settings that a command line gives; the device and the time come from ``options`` where it is silent.

    ``given`` has the fields of Settings, with ``calls``, ``inputs``, ``symbols`` and ``script_args`` as they were
    typed, and ``case``, the path of a TOML file. Raises UsageError.
    """
    inputs, symbols = parse_assignments(given["inputs"], "--input"), parse_symbols(given["symbols"])
    calls = [parse_call(text) for text in given["calls"]]
    if given["case"] is not None:
        calls.append(read_case(given["case"]))
    if not calls:
        for name, option in (("inputs", "--input"), ("symbols", "--size")):
            if given[name]:
                raise UsageError(f"{option} goes with --args or --case: a script makes its own inputs")
        if given["shrink"]:
            raise UsageError(
                "--shrink goes with --args or --case: the shapes that a script has itself cannot be shrunk"
            )
    if given["arithmetic"] != "precise" and options.backend.name != "sim":
        raise UsageError("--arithmetic goes with --backend sim")
    if given["timeout"] is not None and not given["timeout"] > 0:
        raise UsageError("--timeout must be above 0")
    reference, standard, golden = given["reference"], given["standard"], given["golden"] is not None
    if reference is not None and (calls or given["script_args"]):
        raise UsageError("--reference goes without --args, --case and --script-args: the trace has the launches")
    numbers = (
        standard != "tl2npu",
        golden,
        given["rtol"] is not None,
        given["atol"] is not None,
        given["table"] is not None,
    )
    if options.backend.name == "compile" and any(numbers):
        raise UsageError("--backend compile has no numbers for --standard, --golden, --rtol, --atol and --csv")
    if given["arithmetic"] != "precise" and (reference is not None or standard != "tl2npu" or golden):
        raise UsageError("--reference, --standard and --golden go with --arithmetic precise")
    if standard != "tl2npu" and (given["rtol"] is not None or given["atol"] is not None):
        raise UsageError("--rtol and --atol go with --standard tl2npu: the others have thresholds of their own")
    return Settings(
        arithmetic=given["arithmetic"],
        device=options.device,
        backend=options.backend,
        timeout=given["timeout"] or options.verify_timeout,
        seed=given["seed"],
        rtol=given["rtol"],
        atol=given["atol"],
        shrink=given["shrink"],
        check=options if given["check"] else None,
        calls=tuple(replace(c, inputs={**c.inputs, **inputs}, symbols={**c.symbols, **symbols}) for c in calls),
        script_args=tuple(shlex.split(given["script_args"] or "")),
        reference=None if reference is None else str(reference),
        standard=standard,
        golden=golden,
        fp8=options.fp8,
    )
