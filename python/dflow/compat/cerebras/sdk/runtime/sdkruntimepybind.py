"""Vendor-shaped names of ``dflow.sdk``."""

from dflow.sdk.commands import Task
from dflow.sdk.layout import (
    FP16TYPE,
    CodeRegion,
    Color,
    Edge,
    EdgeRouteInfo,
    PortHandle,
    Route,
    RoutingPosition,
    SdkLayout,
    get_edge_routing,
)
from dflow.sdk.platform import SdkTarget, SimfabConfig, get_platform, get_simulator, get_system
from dflow.sdk.platform import Platform as SdkExecutionPlatform
from dflow.sdk.runtime import MemcpyDataType, MemcpyOrder, SdkCompileArtifacts, SdkRuntime

__all__ = [
    "FP16TYPE",
    "CodeRegion",
    "Color",
    "Edge",
    "EdgeRouteInfo",
    "MemcpyDataType",
    "MemcpyOrder",
    "PortHandle",
    "Route",
    "RoutingPosition",
    "SdkCompileArtifacts",
    "SdkExecutionPlatform",
    "SdkLayout",
    "SdkRuntime",
    "SdkTarget",
    "SimfabConfig",
    "Task",
    "get_edge_routing",
    "get_platform",
    "get_simulator",
    "get_system",
]
