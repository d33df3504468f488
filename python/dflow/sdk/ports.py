"""Streams that have names, between the host and single routers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dflow.elements import whole
from dflow.errors import HostError
from dflow.sdk import tensor
from dflow.sdk.arguments import positive, wavelets
from dflow.sdk.commands import Commands, Task


class Ports(Commands):
    """The calls of ``SdkRuntime`` for streams with names."""

    def send(
        self,
        port: str | int,
        src: npt.NDArray[Any],
        n_wavelets: int | None = None,
        nonblock: bool = False,
    ) -> Task:
        """Send an array over a stream into the mesh, a word per 32 bits.

        Done when the words have gone, but for what the stream's buffer holds.
        """
        self._expect_running("send")
        number, name = self._stream(port, to_mesh=True)
        data = wavelets(src, n_wavelets, f"send to `{name}`")

        self._native.send_words(number, data)
        wait = lambda: self._native.wait_sent(number)  # noqa: E731
        return self._submit(Task(self, f"send to `{name}`", wait, in_order=False), nonblock)

    def receive(
        self,
        port: str | int,
        dest: npt.NDArray[Any],
        n_wavelets: int | None = None,
        nonblock: bool = False,
    ) -> Task:
        """Receive words from a stream of the mesh into an array, in place."""
        self._expect_running("receive")
        number, name = self._stream(port, to_mesh=False)
        what = f"dest of receive from `{name}`"
        wavelets(dest, n_wavelets, f"receive from `{name}`")
        array = tensor.flat_view(dest, what)

        def deliver(data: bytes) -> None:
            array[...] = np.frombuffer(data, array.dtype.newbyteorder("<"))

        return self._receive(number, name, dest.nbytes // 4, deliver, nonblock)

    def receive_tofile(
        self,
        port: str | int,
        path: str | os.PathLike[str],
        n_wavelets: int,
        nonblock: bool = False,
    ) -> Task:
        """Receive words from a stream of the mesh into a file, four bytes each."""
        self._expect_running("receive_tofile")
        number, name = self._stream(port, to_mesh=False)
        target = Path(path).resolve()
        count = positive(n_wavelets, f"n_wavelets of receive from `{name}`")
        return self._receive(number, name, count, lambda data: _write(target, data), nonblock)

    def _receive(
        self, stream: int, name: str, count: int, deliver: Callable[[bytes], Any], nonblock: bool
    ) -> Task:
        number = self._native.receive_words(stream, count)
        finish = lambda: deliver(self._native.complete(number))  # noqa: E731
        task = Task(self, f"receive from `{name}`", finish, in_order=False)
        return self._submit(task, nonblock)

    def get_port_id(self, name: str) -> int:
        """Give the number of a stream, to be used in place of its name."""
        for number, (other, *_) in enumerate(self._program.streams):
            if other == name:
                return number
        known = ", ".join(f"`{stream[0]}`" for stream in self._program.streams) or "none"
        raise HostError(f"there is no stream `{name}`; there is {known}")

    def report_port_infos(self) -> None:
        """Print name, direction, color and place on the fabric of every stream."""
        for name, to_mesh, color, x, y, _ in self._program.streams:
            way = "into the mesh" if to_mesh else "to the host"
            print(f"{name}: {way}, color {color}, at ({x}, {y})")

    def _stream(self, port: str | int, to_mesh: bool) -> tuple[int, str]:
        number = self.get_port_id(port) if isinstance(port, str) else whole(port, "a stream's id")
        streams = self._program.streams
        if not 0 <= number < len(streams):
            raise HostError(f"{number} is no id of a stream: get_port_id(name) gives it")
        name, leads_in = streams[number][:2]
        if leads_in != to_mesh:
            way = "into the mesh: send to it" if leads_in else "to the host: receive from it"
            raise HostError(f"the stream `{name}` leads {way}")
        return number, name


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as fault:
        raise HostError(f"{path} cannot be written: {fault.strerror}") from None
