"""``python -m dflow``: the command line ``dflowc``."""

import sys

from dflow.tools import dflowc

sys.exit(dflowc())
