"""Vendor-shaped names of ``dflow.sdk.geometry``."""

from dflow.sdk.geometry import IntRectangle, IntVector

__all__ = ["IntRectangle", "IntVector"]
