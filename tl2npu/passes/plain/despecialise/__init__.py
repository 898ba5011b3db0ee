"""TL198: pipelines that were made by hand, in program order."""
