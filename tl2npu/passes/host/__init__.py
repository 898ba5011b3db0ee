"""Host code: how a kernel is compiled, its signature, who calls it, and the device that all of it runs on."""
