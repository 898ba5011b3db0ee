"""From a kernel for AscendNPU IR in Developer mode to the form that GPU kernels have (`--to ascendc`)."""
