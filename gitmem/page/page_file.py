"""Join data and assets into one file, and write it."""

from __future__ import annotations

import base64
import errno
import gzip
import json
import os
import re
import stat

from .. import local_files
from ..commit_message import sanitize
from ..errors import UsageError
from ..outcome import Outcome
from ..text.digests import sha256
from . import page_data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..agents.caller import CallerClaims
    from ..store import Store
    from .board import Fields


ASSETS = os.path.join(os.path.dirname(__file__), "assets")
TEMPLATE = "page.html"
DATA_URL, EVENTS_URL, ANSWER_URL = "data.json", "events", "answer"
_PART = re.compile(r"<!-- (policy|data|style|script)(?: ([\w./-]+))? -->")
_CLOSES = re.compile(r"<(?=/script|!--)", re.IGNORECASE)  # what a script in HTML can't have
_LEVEL = 5  # 6 takes half as long again and saves a twentieth
JSON_MAX = 24 * 1024 * 1024  # of the data, which a browser has to read
PACKED_MAX = 5_250_000  # of them in gzip: base64 needs four thirds of it, and the page has at most 8 MB

# The lists that can be shortened, and whether the entries that go first are at the beginning. Those of "signals" take threads along.
_LISTS = {"sessions": True, "signals": True, "tasks": True, "claims": True, "commits": True, "nodes": True, "branches": False, "relations": False}  # fmt: skip
_OF_BOARD = {"gates": False, "passed": True, "waits": False, "contested": False, "mismatches": False, "overlaps": False}  # fmt: skip


class Assets:
    """The parts of the page that are the same for every log.

    Args:
        folder: Where they are.
    """

    def __init__(self, folder: str = ASSETS) -> None:
        self._folder = folder
        text = self._read(TEMPLATE)
        self._pieces: list[str] = []  # every other one is made for each page: "policy" or "data"
        self.scripts: list[str] = []
        self.styles: list[str] = []
        end, open_piece = 0, ""
        for found in _PART.finditer(text):
            kind, name = found.groups()
            open_piece += text[end : found.start()]
            end = found.end()
            if name is None:
                self._pieces += [open_piece, kind]
                open_piece = ""
            elif kind == "style":
                self.styles.append(self._read(name))
                open_piece += f"<style>{self.styles[-1]}</style>"
            else:
                self.scripts.append(_CLOSES.sub(r"<\\", self._read(name)))
                open_piece += f"<script>{self.scripts[-1]}</script>"
        self._pieces.append(open_piece + text[end:])

    def _read(self, name: str) -> str:
        with open(os.path.join(self._folder, *name.split("/")), encoding="utf-8", newline="") as file:
            return file.read().replace(
                "\r\n", "\n"
            )  # as the parser of HTML reads it, of which the policy has the digest

    def policy(self, *, served: bool = False) -> str:
        """Return the content security policy.

        Args:
            served: Whether the page may ask the server that it comes from for data.
        """
        connect = "'self'" if served else "'none'"
        rules = (
            "default-src 'none'",
            f"script-src {' '.join(map(_digest, self.scripts))}",
            f"style-src {' '.join(map(_digest, self.styles))}",
            "img-src data:",
            f"connect-src {connect}",
            "base-uri 'none'",
            "form-action 'none'",
        )
        return "; ".join(rules)

    def page(self, data: Fields | None) -> bytes:
        """Return the file.

        Args:
            data: What it shows; None for a page that asks its server for them.
        """
        if data is None:
            block = f'<script type="application/json" id="data" data-source="{DATA_URL}" data-events="{EVENTS_URL}" data-answer="{ANSWER_URL}"></script>'
        else:
            text = base64.b64encode(packed(data)).decode("ascii")
            block = f'<script type="application/octet-stream+base64" id="data">{text}</script>'
        policy = self.policy(served=data is None)
        made = {
            "policy": f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            "data": block,
        }
        return "".join(
            made[piece] if place % 2 else piece for place, piece in enumerate(self._pieces)
        ).encode("utf-8", "backslashreplace")


def packed(data: Fields, json_most: int = JSON_MAX, most: int = PACKED_MAX) -> bytes:
    """Return the data as JSON in gzip.

    Args:
        data: If they are larger than a page may be, the oldest are left out of them.
        json_most: Bytes of JSON.
        most: Bytes of gzip.
    """
    text = as_json(data)
    while len(text) > json_most and _shorten(data):
        text = as_json(data)
    found = gzip.compress(text, _LEVEL, mtime=0)
    while len(found) > most and _shorten(data):
        found = gzip.compress(as_json(data), _LEVEL, mtime=0)
    return found


def as_json(data: object) -> bytes:
    """Return data as JSON in UTF-8. Halves of surrogate pairs, which JSON in UTF-8 can't have, are escaped."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode('ascii')}'"


def _shorten(data: Fields) -> bool:
    """Leave out the older half of the largest list, with what it alone needs; return whether there was any."""
    lists = [(data, name) for name in _LISTS] + [(data["board"], name) for name in _OF_BOARD]
    with_threads = {"signals": data["threads"]}
    of, name = max(lists, key=lambda each: len(as_json([each[0][each[1]], with_threads.get(each[1])])))
    rows, oldest_first = of[name], {**_LISTS, **_OF_BOARD}[name]
    left = (len(rows) + 1) // 2
    if not left:
        return False
    data["omitted"][name] = data["omitted"].get(name, 0) + left
    del rows[slice(0, left) if oldest_first else slice(len(rows) - left, None)]
    _drop_what_lost_its_end(data)
    return True


def _drop_what_lost_its_end(data: Fields) -> None:
    """Leave out threads without a signal and relations without a node; count the signals that threads have lost."""
    shown: dict[str, int] = {}
    for signal in data["signals"]:
        shown[signal["thread"]] = shown.get(signal["thread"], 0) + 1
    data["threads"] = [each for each in data["threads"] if each["id"] in shown]
    for thread in data["threads"]:
        if thread["signals"] > shown[thread["id"]]:
            thread["more"] = thread["signals"] - shown[thread["id"]]
    nodes = {each["id"] for each in data["nodes"]}
    data["relations"] = [each for each in data["relations"] if each["from"] in nodes and each["to"] in nodes]
    tasks = {each["id"] for each in data["tasks"]}
    data["board"]["open_tasks"] = [each for each in data["board"]["open_tasks"] if each in tasks]


FILE = "view.html"


class View(Outcome):
    """A page that was written.

    Attributes:
        path: The file.
        bytes: Its size.
        counts: How many entries of each kind it has.
        omitted: How many the limits left out.
        opened: Whether a browser was started; None if nobody asked for one.
        warnings: Sentences on what the page lacks.
    """

    def __init__(self, path: str, size: int, data: Fields) -> None:
        self.path = path
        self.bytes = size
        self.counts = {
            "agents": len(data["agents"]),
            "sessions": len(data["sessions"]),
            "signals": len(data["signals"]),
            "threads": len(data["threads"]),
            "tasks": len(data["tasks"]),
            "claims": len(data["claims"]),
            "commits": len(data["commits"]),
            "nodes": len(data["nodes"]),
        }
        self.omitted = data["omitted"]
        self.opened: bool | None = None
        self.warnings = list(data["notes"])
        self.next: list[str] = []


def view(
    store: Store,
    out: str | None = None,
    *,
    since: int | None = None,
    wu: str | None = None,
    agent: str | None = None,
    who: CallerClaims | None = None,
) -> View:
    """Write the page, for this user alone to read: it has everybody's messages.

    Args:
        store: The log that it is about.
        out: The file; by default one in the clone's folder of gitmem, which the next page replaces.
        since: As for `signals.thread_list.Selection`; so `wu` and `agent`.
        who: For whom it is, see `page_data.collect`.

    Raises:
        UsageError: `not-writable`: the file can't be written, or the name is that of something else than a file; `unknown-agent`.
    """
    path = out if out is not None else os.path.join(store.repo.state, FILE)
    try:
        _refuse_others(path)
    except OSError as error:
        raise _not_writable(path, error) from error
    data = page_data.collect(store, since=since, wu=wu, agent=agent, who=who)
    content = Assets().page(data)
    try:
        if out is None:
            local_files.make_dirs(store.repo.state)
        local_files.replace(path, content, private=True)
    except OSError as error:
        raise _not_writable(path, error) from error
    return View(path, len(content), data)


def _refuse_others(path: str) -> None:
    """Refuse a name that is not free and not that of a file, before anything is collected.

    Replacing it would remove a device or a link: as root `--out /dev/null` would make a file of it for the whole machine.

    Raises:
        OSError: The name is that of a folder, a link, a pipe, a socket or a device.
    """
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        kind = (
            "a folder"
            if os.path.isdir(path)
            else "a symbolic link"
            if stat.S_ISLNK(mode)
            else "not a regular file"
        )
        raise OSError(errno.EEXIST, f"it is {kind}")


def _not_writable(path: str, error: OSError) -> UsageError:
    return UsageError(
        f"Cannot write {sanitize(path)} ({error.strerror}). Nothing was written.",
        hint="Name a file in a folder that you may write to with --out.",
        code="not-writable",
    )
