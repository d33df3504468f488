"""Refused: the appliance's interface."""

raise ImportError(
    "cerebras.appliance talks to an appliance, and dflow is an emulator: use "
    "cerebras.sdk.runtime.sdkruntimepybind, and compile with cslc"
)
