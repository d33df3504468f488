"""What a run tells of its words at the end."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

from dflow.errors import ProgramWarning

if TYPE_CHECKING:
    from dflow import _native


def tell(machine: _native.Machine, stacklevel: int) -> None:
    """Tell what was odd as warnings, and what was not as expected at the end as notes.

    Notes go to the standard error output: words that are left, operations that still wait.
    """
    odd, notes = machine.account()
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    for text in odd:
        warnings.warn(text, ProgramWarning, stacklevel=stacklevel + 1)
