"""Vendor-shaped names of ``dflow.sdk.debug``."""

from dflow.sdk.debug import debug_util

__all__ = ["debug_util"]
