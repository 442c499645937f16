"""Doors: by which a session's client is told that signals wait, while its agent waits for its user. A client is one row and one function.

A door is noted when its session begins, in the user's own state folder (`doors/<session id>`) and nowhere else: it is never published, and
nothing that a repository or a peer brings names one. It is used only while the process that it was noted for lives. A client's files and
sockets must belong to this user, and the process behind a socket must be that of the session.
"""

from __future__ import annotations

import os
import stat
import sys

from .. import local_files
from ..outcome import Struct
from ..records.ids import is_id
from ..text import strict_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

FOLDER = "doors"  # in gitmem's folder in the user's state folder
SECONDS = 1.0  # for a socket
PROGRAM_TIMES = 5  # as long for a program
FILE_MAX = 64 * 1024  # bytes of a client's file
ANSWER_MAX = 64  # bytes
OUTPUT_MAX = 64 * 1024
PATH_MAX = 4_096
KEPT_SECONDS = 30 * 24 * 3600
# What a door answers, beside sentences why it can't be used.
READY, WOKEN, BUSY = "ready", "woken", "busy"
NOT_NOTED = "its client has none that is known here; a session that began before needs a new start"
ENDED = "its client does not run"
OTHER = "its client shows another conversation"
FOREIGN = "another process than its client answers"
LATE = "it did not answer in time"  # perhaps it was told


class Door(Struct):
    """The door of a session.

    Attributes:
        client: The name of its client.
        session: The client's own id of the session.
        pid: The process of the client.
        folder: The client's own folder.
        program: The client's program, an absolute path; "" if none was found.
        began: When that process began, see `started`.
        noted: When the session began, in microseconds since the epoch.
    """

    client: str
    session: str
    pid: int
    folder: str
    program: str = ""
    began: str = ""
    noted: int = 0


def note(folder: str, session_id: str, door: Door, now: float) -> None:
    """Note the door of a session that begins, or goes on in another process; forget one that it had. Never raises.

    Args:
        folder: The folder of the doors.
        now: In seconds since the epoch.
    """
    door.began = started(door.pid)
    rows = (door.client, door.session, str(door.pid), door.began, door.folder, door.program)
    forget(folder, session_id)
    if door.client not in DOORS or not door.began or any("\n" in each or "\0" in each for each in rows):
        return
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        if _is_own_folder(folder):
            local_files.replace(os.path.join(folder, session_id), os.fsencode("\n".join(rows)), private=True)
    except (OSError, ValueError):
        return
    for name in local_files.names_in(folder):
        path = os.path.join(folder, name)
        if local_files.modified(path, now) < now - KEPT_SECONDS:
            local_files.remove_quietly(path)


def forget(folder: str, session_id: str) -> None:
    """Forget the door of a session that ended."""
    if folder and is_id("sess", session_id):
        local_files.remove_quietly(os.path.join(folder, session_id))


def sessions(folder: str) -> list[str]:
    """Return the sessions of this user, in whatever repository, that have doors."""
    return [name for name in local_files.names_in(folder) if is_id("sess", name)] if folder else []


def read(folder: str, session_id: str) -> Door | None:
    """Return the door of a session; None if none is noted."""
    path = os.path.join(folder, session_id)
    if (
        not is_id("sess", session_id)
        or not _is_own_folder(folder)
        or not local_files.is_users(path, others=stat.S_IWOTH)
    ):
        return None
    rows = os.fsdecode(local_files.read(path, FILE_MAX)).split("\n")
    if len(rows) != 6 or rows[0] not in DOORS or not rows[2].isdecimal() or len(rows[2]) > 9:
        return None
    client, session, pid, began, home, program = rows
    return Door(client, session, int(pid), home, program, began, int(local_files.modified(path) * 1_000_000))


def says(door: Door | None) -> str:
    """Return whether a session is woken, and by what or why not, in words."""
    answer = ask(door)
    return f"yes, by {DOORS[door.client][0]}" if door is not None and answer == READY else f"no, {answer}"


def ask(door: Door | None, line: str = "", *, is_idle: bool = True, seconds: float = SECONDS) -> str:
    """Tell a client a line; return `WOKEN`, `BUSY`, or why it can't be told. Without a line only look: then `READY` in place of the two.

    Args:
        is_idle: Whether its agent waits for its user, as far as hooks know; some clients say it themselves.
    """
    if door is None:
        return NOT_NOTED
    if not door.began or started(door.pid) != door.began:
        return ENDED
    if not _is_own_folder(door.folder):
        return "the folder of its client is not this user's alone"
    try:
        return DOORS[door.client][1](door, line, is_idle, seconds)
    except TimeoutError:
        reason = LATE
    except OSError as error:
        reason = error.strerror or "it does not answer"
    except (ValueError, RecursionError):
        reason = "what its client says can't be read"
    return f"{DOORS[door.client][0]} can't be used: {reason}"


def started(pid: int) -> str:
    """Return when a process of this user began, as the system counts; "?" where it does not tell, "" if it has ended or was stopped."""
    if pid <= 1:
        return ""
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat", "rb") as file:
            words = file.read(FILE_MAX).rpartition(b")")[2].split()
        return "" if words[0] in b"ZXTt" else words[19].decode("ascii")
    except FileNotFoundError:
        return "" if sys.platform == "linux" else "?"
    except (OSError, IndexError, ValueError, OverflowError):
        return ""


def program_of(pid: int, name: str) -> str:
    """Return the program that a process runs, where the system tells it and its name is like this one; else ""."""
    try:
        found = os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""
    return found if os.path.basename(found).startswith(name) else ""


def _is_own_folder(path: str) -> bool:
    return local_files.is_users(path, stat.S_ISDIR, stat.S_IWOTH, follow=True)


def _is_own_socket(path: object) -> bool:
    """Return whether a path names a socket of this user, in a folder that only this user may change."""
    if not isinstance(path, str) or not os.path.isabs(path) or len(path) > PATH_MAX or "\0" in path:
        return False
    folder = os.path.dirname(path)
    return local_files.is_users(path, stat.S_ISSOCK, 0) and local_files.is_users(
        folder, stat.S_ISDIR, follow=True
    )


def _send(path: str, message: object, pid: int, seconds: float, *, answers: bool = False) -> bytes:
    """Send a message, as a line of JSON, to a socket, if a process of this user with that id has it.

    Args:
        answers: Whether the other side answers.

    Returns:
        Its answer; `FOREIGN` as bytes if another process has the socket.

    Raises:
        OSError: It can't be reached, or not in time.
    """
    import json
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(seconds)
        line.connect(path)
        if _peer(line) != (os.geteuid(), pid):
            return FOREIGN.encode()
        line.sendall(json.dumps(message).encode() + b"\n")
        return line.recv(ANSWER_MAX) if answers else b""


def _peer(line: socket.socket) -> tuple[int, int]:
    """Return the user and the process at the other end of a socket; (-1, -1) where the system does not tell."""
    import socket
    import struct

    if sys.platform == "linux":
        pid, uid, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return uid, pid
    if sys.platform == "darwin":  # LOCAL_PEERCRED and LOCAL_PEERPID of SOL_LOCAL
        return struct.unpack_from("I", line.getsockopt(0, 1, 76), 4)[0], struct.unpack(
            "i", line.getsockopt(0, 2, 4)
        )[0]
    return -1, -1


# The second while a command of its user runs; a message would answer an open question of "waiting".
_AT_REST = ("idle", "shell")


def _claude_code(door: Door, line: str, is_idle: bool, seconds: float) -> str:
    """Send to the inbox that the client's file of this process names."""
    path = os.path.join(door.folder, "sessions", f"{door.pid}.json")
    if not local_files.is_users(path, others=stat.S_IWOTH):
        return "Claude Code has no file of its session"
    content = local_files.load_whole(path, FILE_MAX)
    found: Any = strict_json.read(content.decode("utf-8").strip())
    if not isinstance(found, dict) or found.get("pid") != door.pid or found.get("sessionId") != door.session:
        return OTHER
    inbox = found.get("messagingSocketPath")
    if inbox is None:
        return "Claude Code's messages between sessions are off, or it is older than 2.1.224"
    if not _is_own_socket(inbox):
        return "its socket is not this user's alone"
    if not line:
        return READY
    status = found.get("status")
    if status not in _AT_REST if isinstance(status, str) else not is_idle:
        return BUSY
    import uuid

    message = {"role": "user", "content": line}
    told = {"type": "user", "msgV": 1, "msg_id": str(uuid.uuid4()), "priority": "next", "message": message}
    return _send(inbox, told, door.pid, seconds).decode() or WOKEN


_THREAD = frozenset("0123456789abcdef-")


def _codex(door: Door, line: str, is_idle: bool, seconds: float) -> str:
    """Queue a message for the thread, which a Codex that shows it takes at once."""
    if not door.program or not os.access(door.program, os.X_OK):
        return "there is no codex on the PATH of its session"
    if len(door.session) != 36 or not _THREAD.issuperset(door.session):
        return "its thread has an unusual id"
    if not line:
        return READY
    if not is_idle:
        return BUSY
    from ..git import processes

    command = [door.program, "queue", "--thread", door.session, "--message", line]
    variables = processes.environment({"CODEX_HOME": door.folder})
    try:
        done = processes.run_program(command, door.folder, variables, PROGRAM_TIMES * seconds, OUTPUT_MAX)
    except processes.ProgramError as error:
        return f"{error}: {LATE}" if error.was_started else str(error)
    said = processes.summary_line(done.err)[:200]
    return WOKEN if not done.code else f"`codex queue`, which Codex 0.149 has, failed: {said or done.code}"


def _opencode(door: Door, line: str, is_idle: bool, seconds: float) -> str:
    """Tell gitmem's plugin, which tells an agent at work after its turn, unless something was shown to it until then."""
    path = os.path.join(door.folder, f"opencode-{door.pid}.sock")
    if not _is_own_socket(path):
        return "gitmem's plugin in OpenCode is older, or could not make its socket"
    if not line:
        return READY
    answer = _send(path, {"session": door.session, "text": line}, door.pid, seconds, answers=True)
    return {b"woken\n": WOKEN, FOREIGN.encode(): FOREIGN}.get(answer, OTHER)


# By client: its door in words, and the function that knocks.
DOORS: dict[str, tuple[str, Callable[[Door, str, bool, float], str]]] = {
    "claude-code": ("Claude Code's inbox of a session", _claude_code),
    "codex": ("`codex queue`", _codex),
    "opencode": ("gitmem's plugin in OpenCode", _opencode),
}
