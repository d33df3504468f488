"""Refused: the runner of SDK 0.2 to 0.8."""

raise ImportError(
    "cerebras.elf (CSELFRunner) is the host interface of SDK 0.2 to 0.8, which dflow does not "
    "have: compile with `cslc --memcpy` and use SdkRuntime"
)
