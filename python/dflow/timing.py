"""Timestamps of PEs as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dflow.elements import as_array
from dflow.errors import HostError


def timestamps(words: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Give timestamps of three 16-bit words each, low word first, as numbers of cycles.

    ``words`` holds them in its last dimension, whose size is a multiple of three.

    Raises:
        HostError: it is not, or these are no whole numbers.
    """
    values = as_array(words)
    if values.size and values.dtype.kind not in "iu":
        raise HostError(f"timestamps are made of whole numbers, found {values.dtype}")
    if values.ndim == 0 or values.shape[-1] % 3:
        raise HostError(f"timestamps have three words each, found shape {values.shape}")
    parts: npt.NDArray[Any] = values.astype(np.int64) & 0xFFFF
    parts = parts.reshape(*values.shape[:-1], values.shape[-1] // 3, 3)
    numbers: npt.NDArray[np.int64] = parts[..., 0] | parts[..., 1] << 16 | parts[..., 2] << 32
    return numbers.reshape(values.shape[:-1]) if values.shape[-1] == 3 else numbers
