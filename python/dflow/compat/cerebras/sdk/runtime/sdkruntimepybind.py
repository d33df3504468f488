"""Vendor-shaped names of ``dflow.sdk``."""

from dflow.sdk.platform import SdkTarget, SimfabConfig, get_platform, get_simulator, get_system
from dflow.sdk.runtime import MemcpyDataType, MemcpyOrder, SdkCompileArtifacts, SdkRuntime

__all__ = [
    "MemcpyDataType",
    "MemcpyOrder",
    "SdkCompileArtifacts",
    "SdkRuntime",
    "SdkTarget",
    "SimfabConfig",
    "get_platform",
    "get_simulator",
    "get_system",
]
