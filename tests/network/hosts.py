"""Hosts of our own: network namespaces on one bridge, with links that can be cut and healed.

Needs root and Debian's iproute2. Everything has a name that begins with `gm` and this process's id, and the
bridge has a namespace too, so nothing of the machine's own network is touched.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NETWORK = "10.77.0"
CLONE_NEWNET = 0x40000000


def ip(*args: str) -> None:
    done = subprocess.run(["ip", *args], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, f"ip {' '.join(args)}: {done.stderr}"


class Host:
    """A host with an address, on a link to the bridge."""

    def __init__(self, lan: str, name: str, number: int) -> None:
        self.name = name
        self.space = f"{lan}-{name}"
        self.address = f"{NETWORK}.{number}"
        self._lan = lan
        self._port = f"p{number}"
        ip("netns", "add", self.space)
        ip(
            "link",
            "add",
            "eth0",
            "netns",
            self.space,
            "type",
            "veth",
            "peer",
            "name",
            self._port,
            "netns",
            lan,
        )
        ip("-n", self.space, "address", "add", f"{self.address}/24", "dev", "eth0")
        ip("-n", self.space, "link", "set", "eth0", "up")
        ip("-n", self.space, "link", "set", "lo", "up")
        ip("-n", lan, "link", "set", self._port, "master", "bridge")
        self.heal()

    def cut(self) -> None:
        """From now on its packets go nowhere, and nobody tells it so."""
        ip("-n", self._lan, "link", "set", self._port, "nomaster")

    def heal(self) -> None:
        ip("-n", self._lan, "link", "set", self._port, "master", "bridge")
        ip("-n", self._lan, "link", "set", self._port, "up")

    def listen(self) -> socket.socket:
        """A socket of this host that listens. It can be served from here: a socket stays where it was made."""
        made: list[socket.socket] = []

        def make() -> None:  # in a thread of its own, which alone moves to the host
            libc = ctypes.CDLL(None, use_errno=True)
            with open(f"/run/netns/{self.space}") as space:
                assert libc.setns(space.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
            made.append(socket.create_server((self.address, 0)))

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        return made[0]

    def gitmem(self, cwd: Path, *args: str, session: str | None = None) -> Running:
        """A command that runs on this host."""
        env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}
        if session is not None:
            env["GITMEM_SESSION"] = session
        command = ["ip", "netns", "exec", self.space, sys.executable, "-m", "cli", *args, "--json"]
        return Running(subprocess.Popen(command, cwd=cwd, env=env, stdout=subprocess.PIPE, text=True))


class Running:
    """A command of gitmem that runs on a host."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def end(self, status: int = 0) -> Any:
        """Its answer, when it has ended with that status."""
        out, _ = self._process.communicate(timeout=60)
        assert self._process.returncode == status, out
        return json.loads(out)


@contextmanager
def three() -> Iterator[list[Host]]:
    """Three hosts, of which each reaches the others."""
    lan = f"gm{os.getpid()}"
    names = ("hub", "left", "right")
    try:
        ip("netns", "add", lan)
        ip("-n", lan, "link", "add", "bridge", "type", "bridge", "forward_delay", "0")
        ip("-n", lan, "link", "set", "bridge", "up")
        yield [Host(lan, name, number) for number, name in enumerate(names, start=1)]
    finally:
        for space in (lan, *(f"{lan}-{name}" for name in names)):
            subprocess.run(["ip", "netns", "delete", space], capture_output=True, timeout=30)
