"""Compile and run wafer-scale dataflow programs on an ordinary computer.

>>> import dflow
>>> program = dflow.compile("adder.csl", params={"width": 4})
>>> with dflow.Machine(program) as machine:
...     machine.copy_in("a", values)
...     machine.launch("add")
...     total = machine.copy_out("a", count=32)
"""

from dflow.errors import CompileError, Deadlock, Error, HostError, LimitReached, ProgramWarning, Trap
from dflow.machine import ConsoleLine, Machine, Program, Stats, compile
from dflow.symbols import Symbol
from dflow.timing import timestamps

__all__ = [
    "CompileError",
    "ConsoleLine",
    "Deadlock",
    "Error",
    "HostError",
    "LimitReached",
    "Machine",
    "Program",
    "ProgramWarning",
    "Stats",
    "Symbol",
    "Trap",
    "compile",
    "timestamps",
]
