"""Where a remote lies: behind HTTP with a password, or behind ssh with a key; clones reach it as a user's would."""

from __future__ import annotations

import os
import pwd
import shlex
import socket
import subprocess
import time
from pathlib import Path

from tests.clones import git

from .git_over_http import PASSWORD, USER, Server

SSHD = Path("/usr/sbin/sshd")


class Http:
    """Smart HTTP with basic authentication; clones have a credential helper."""

    def __init__(self, root: Path, hub: Path) -> None:
        self.server = Server(hub.parent)
        self.url = f"{self.server.url}/{hub.name}"
        self.address = self.server.server_address[:2]
        self.kept = root / "kept-credentials"
        self.wrong = root / "wrong-credentials"
        for file, word in ((self.kept, PASSWORD), (self.wrong, "guessed")):
            host = self.server.url.removeprefix("http://")
            file.write_text(f"http://{USER}:{word.replace(' ', '%20')}@{host}\n")
            file.chmod(0o600)

    def config(self, *, right: bool = True) -> dict[str, str]:
        """What a user's git config says to get in."""
        file = self.kept if right else self.wrong
        return {"credential.helper": f"store --file={shlex.quote(str(file))}"}

    def url_at(self, port: int) -> str:
        """The url of a server at another port."""
        return f"http://127.0.0.1:{port}/hub.git"

    def end(self) -> None:
        self.server.end()


class Ssh:
    """A real sshd on loopback with keys of its own. The user's `~/.ssh` is neither read nor written."""

    def __init__(self, root: Path, hub: Path) -> None:
        assert SSHD.exists(), "these tests need Debian's openssh-server"
        self.root = root / "ssh"
        self.root.mkdir()
        for name in ("host", "right", "wrong"):
            _key(self.root / name)
        _key(self.root / "locked", "a passphrase that nobody is there to type")
        allowed = [(self.root / f"{name}.pub").read_text() for name in ("right", "locked")]
        (self.root / "allowed").write_text("".join(allowed))
        self.port = _free_port()
        (self.root / "known").write_text(f"[127.0.0.1]:{self.port} {(self.root / 'host.pub').read_text()}")
        config = self.root / "sshd_config"
        config.write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.root / 'host'}\n"
            f"AuthorizedKeysFile {self.root / 'allowed'}\nAuthenticationMethods publickey\nStrictModes no\n"
            "PermitRootLogin prohibit-password\nUsePAM no\nPidFile none\nPermitUserRC no\n"
        )
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(
                exist_ok=True
            )  # where it gives up its rights; made at boot, else by nobody
        self.log = self.root / "sshd.log"
        self.process = subprocess.Popen([SSHD, "-D", "-f", config, "-E", self.log])
        self.user = pwd.getpwuid(os.getuid()).pw_name
        self.url = f"ssh://{self.user}@127.0.0.1:{self.port}{hub}"
        self.address = ("127.0.0.1", self.port)
        _until_open(self.port, self.log)

    def config(self, *, right: bool = True) -> dict[str, str]:
        return {"core.sshCommand": self.command("right" if right else "wrong")}

    def command(self, key: str, *more: str) -> str:
        """An ssh with one key and our own list of known hosts; of an option, ssh takes what comes first."""
        words = ["ssh", "-F", "none", *more, "-i", str(self.root / key), "-oIdentitiesOnly=yes", "-oIdentityAgent=none",
                 f"-oUserKnownHostsFile={self.root / 'known'}", "-oGlobalKnownHostsFile=none"]  # fmt: skip
        return shlex.join(words)

    def url_at(self, port: int) -> str:
        return f"ssh://{self.user}@127.0.0.1:{port}/hub.git"

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(10)


def clone(site: Http | Ssh, path: Path, *, right: bool = True) -> None:
    """A clone that reaches its remote by this site, with the right or with the wrong credentials."""
    words = [word for pair in site.config().items() for word in ("--config", "=".join(pair))]
    git("clone", "--quiet", *words, site.url, str(path), cwd=path.parent)
    if not right:
        for name, value in site.config(right=False).items():
            git("config", name, value, cwd=path)


def _key(path: Path, passphrase: str = "") -> None:
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", path.name, "-f", str(path)]
    subprocess.run(make, check=True, timeout=30)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _until_open(port: int, log: Path) -> None:
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(log.read_text())
