"""SSH signatures, by the program `ssh-keygen`: without a terminal or a question, within a time, and in a folder of its own."""

from __future__ import annotations

import os
from binascii import a2b_base64, b2a_base64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "ssh-keygen"
NAMESPACE = "gitmem"  # so that a signature of anything else is none of a writer
SIGN_SECONDS = 30.0  # somebody may have to touch a hardware key
VERIFY_SECONDS = 5.0
SIGNATURE_MAX = 6_000  # bytes: of an RSA key of 16,384 bits they are 4,300
OUTPUT_MAX = 64 * 1024
_ASKING = ("SSH_ASKPASS", "DISPLAY", "WAYLAND_DISPLAY")
_MAGIC = b"SSHSIG\0\0\0\1"
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"


class SshError(Exception):
    """The program could not do it; the argument is why, in a sentence without an end."""


def sign(program: str, key: str, text: str, *, seconds: float = SIGN_SECONDS) -> bytes:
    """Return the signature of a text, in the binary form of SSHSIG.

    Args:
        program: What signs, such as `PROGRAM`.
        key: The absolute path of a key, or a public key whose other half an agent has.

    Raises:
        SshError: There is none.
    """
    import tempfile

    from ..git.processes import summary_line

    with tempfile.TemporaryDirectory(prefix="gitmem-ssh-") as folder:
        path = key if os.path.isabs(key) else _write(folder, "key.pub", f"{key}\n")
        of = _write(folder, "text", text)
        code, _, err = _run([program, "-Y", "sign", "-n", NAMESPACE, "-f", path, of], folder, seconds)
        try:
            with open(f"{of}.sig", "rb") as file:
                lines = file.read(2 * SIGNATURE_MAX).decode("ascii").split()
            found = a2b_base64("".join(lines[3:-3]), strict_mode=True)
        except (OSError, ValueError):
            found = b""
    if code or not key_of(found):
        raise SshError(f"{program} has not signed: {summary_line(err) or f'exit status {code}'}")
    return found


def verifies(signature: bytes, text: str, *, program: str = PROGRAM) -> bool:
    """Return whether a signature is one of a text, made with the key that it names.

    Args:
        text: One word, which names who has signed.

    Raises:
        SshError: Nothing can be said.
    """
    import base64
    import tempfile

    with tempfile.TemporaryDirectory(prefix="gitmem-ssh-") as folder:
        allowed = _write(folder, "allowed", f"{text} {key_of(signature)}\n")
        encoded = base64.encodebytes(signature).decode()
        armored = _write(folder, "signature", f"{_BEGIN}\n{encoded}{_END}\n")
        command = [program, "-Y", "verify", "-n", NAMESPACE, "-I", text, "-f", allowed, "-s", armored]
        code, out, _ = _run(command, folder, VERIFY_SECONDS, text.encode())
    # Both: where this process ignores SIGCHLD, each exit status is 0.
    return code == 0 and out.startswith(f'Good "{NAMESPACE}" signature for {text} '.encode())


def key_of(signature: bytes) -> str:
    """Return the public key that a signature names; "" if it is none."""
    size = int.from_bytes(signature[len(_MAGIC) :][:4], "big")
    key = signature[len(_MAGIC) + 4 :][:size]
    return _shown(key) if signature.startswith(_MAGIC) and len(key) == size else ""


def public_key(kind: str, encoded: str) -> str:
    """Return a public key in the one form that it has here, `KIND BASE64`; "" if it is none.

    Args:
        kind: Such as `ssh-ed25519`.
        encoded: Its base64.
    """
    try:
        found = _shown(a2b_base64(encoded, strict_mode=True))
    except ValueError:
        return ""
    return found if found.startswith(f"{kind} ") else ""


def _shown(key: bytes) -> str:
    kind = key[4:][: int.from_bytes(key[:4], "big")].decode("ascii", "replace")
    is_kind = kind.startswith(("ssh-", "ecdsa-", "sk-")) and kind.replace("@", "").replace(".", "").replace("-", "").isalnum()  # fmt: skip
    return f"{kind} {b2a_base64(key, newline=False).decode()}" if is_kind and kind.isascii() else ""


def _write(folder: str, name: str, text: str) -> str:
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def _run(command: Sequence[str], folder: str, seconds: float, input: bytes = b"") -> tuple[int, bytes, str]:
    """Return exit status, output and errors of a command that can ask nobody anything."""
    import subprocess

    from ..git import processes

    variables = processes.environment({"SSH_ASKPASS_REQUIRE": "never"})
    for name in _ASKING:
        variables.pop(name, None)
    try:
        child = subprocess.Popen(
            command, cwd=folder, env=variables, stdin=subprocess.PIPE if input else subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise SshError(f"{command[0]} could not be started ({error.strerror})") from None
    try:
        code, out, err = processes.communicate(child, input, seconds, OUTPUT_MAX)
    except BaseException as error:
        processes.kill(child)
        if isinstance(error, TimeoutError):
            raise SshError(f"{command[0]} did not end within {seconds:g} seconds and was stopped") from None
        if isinstance(error, processes.OutputTooLargeError):
            raise SshError(f"{command[0]} wrote more than {OUTPUT_MAX:,} bytes and was stopped") from None
        raise
    said = err.decode("utf-8", "replace")
    if code and "option -- " in said:
        raise SshError(f"{command[0]} is too old: it has no -Y, which OpenSSH 8.2 has")
    return code, out, said
