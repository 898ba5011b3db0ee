"""Runs the model that a file of a benchmark defines, on the inputs that it gives."""

from __future__ import annotations

import ast
from typing import Any

from tl2npu.source.benchmark import model_of


def run_model(text: str, namespace: dict[str, Any]) -> None:
    """Run the model of a file that was executed as a script, if it is a benchmark that runs nothing. The seed is 0."""
    name = model_of(ast.parse(text)) if "get_inputs" in namespace else None
    if name is None:
        return
    import torch

    torch.manual_seed(0)
    first = namespace["get_init_inputs"]() if "get_init_inputs" in namespace else []
    model = namespace[name](**first) if isinstance(first, dict) else namespace[name](*first)
    model = model.cuda() if isinstance(model, torch.nn.Module) else model
    inputs = [item.cuda() if isinstance(item, torch.Tensor) else item for item in namespace["get_inputs"]()]
    with torch.no_grad():
        model(*inputs)
