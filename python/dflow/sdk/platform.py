"""Targets and platforms: what a program is compiled for and where it runs."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from dflow.errors import HostError


class SdkTarget(enum.Enum):
    """Hardware generations."""

    WSE2 = "wse2"
    WSE3 = "wse3"


@dataclass
class SimfabConfig:
    """Settings of the emulator.

    Attributes:
        num_threads: threads that run the mesh; by default as many as it is worth.
        suppress_trace: accepted; this emulator writes no traces unless asked.
        dump_core: write the machine's memory to ``core_path`` at the end of a run.
        core_path: where to; ``corefile.cs1`` in the current folder by default.
    """

    num_threads: int | None = None
    suppress_trace: bool = False
    dump_core: bool = False
    core_path: str | None = None


class Platform:
    """Where programs run: always this emulator."""

    def __init__(self, config: SimfabConfig, target: SdkTarget) -> None:
        self.config = config
        self.target = target

    def is_simulation(self) -> bool:
        """Whether programs are emulated."""
        return True

    def is_system(self) -> bool:
        """Whether programs run on hardware."""
        return False


def get_platform(
    cmaddr: str | None = None,
    config: SimfabConfig | None = None,
    target: SdkTarget = SdkTarget.WSE3,
) -> Platform:
    """Give the platform at an address; without an address the emulator."""
    refuse_address(cmaddr)
    return Platform(config or SimfabConfig(), target)


def get_simulator(
    config: SimfabConfig | None = None, target: SdkTarget = SdkTarget.WSE3
) -> Platform:
    """Give the emulator."""
    return get_platform(None, config, target)


def get_system(cmaddr: str) -> Platform:
    """Refuse: there is no hardware behind this package."""
    refuse_address(cmaddr or "(none)")
    raise AssertionError("unreachable")


def refuse_address(cmaddr: str | None) -> None:
    """Refuse the address of a system.

    Raises:
        HostError: there is one.
    """
    if cmaddr:
        raise HostError(f"dflow is an emulator and reaches no system at {cmaddr}: leave cmaddr out")
