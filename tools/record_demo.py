"""Record `gitmem demo` as a terminal session: `python tools/record_demo.py` writes docs/demo.cast.

The format is asciicast v2: a header and one event a line, each a JSON document. Ids, times and delays are replaced, so
two recordings differ only if the demo does.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORDING = ROOT / "docs/demo.cast"
HEADER = {"version": 2, "width": 120, "height": 36, "title": "gitmem demo"}
PROMPT = re.compile(r"(\S+ )?\S+\$ (gitmem|git) ")
RECORD_ID = re.compile(r"\b(sess|sig|thread|task|claim|mem)-[0-9a-z]{22}\b")
COMMIT_ID = re.compile(r"(?<=commit )[0-9a-f]{12}\b|(?<=\* )[0-9a-f]{7,}\b")
AGE = re.compile(r"\b(a minute|\d+ (s|min|minutes)) ago\b")
END = re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d UTC")
FOLDER = re.compile(r"\S*gitmem-demo-\w+/")
END_OF_STEPS = ("All of it in one page", "To start in your own repository")
LINE_SECONDS, COMMAND_SECONDS, CHAPTER_SECONDS = 0.06, 1.2, 2.4


def main() -> int:
    """Run the demo and write the recording."""
    RECORDING.write_text(cast(demo()), encoding="utf-8")
    return 0


def demo() -> list[str]:
    """Return the lines that the demo prints, without the next steps at its end."""
    done = subprocess.run(
        [sys.executable, "-m", "cli", "demo"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    end = next(number for number, line in enumerate(lines) if line.startswith(END_OF_STEPS))
    return lines[:end]


def cast(lines: list[str]) -> str:
    """Return the recording of some lines, with fixed ids and times."""
    known: dict[str, str] = {}
    seconds = 0.0
    events = []
    for line in lines:
        if line.startswith("#"):
            seconds += CHAPTER_SECONDS
        elif PROMPT.match(line):
            seconds += COMMAND_SECONDS
        else:
            seconds += LINE_SECONDS
        text = AGE.sub("just now", RECORD_ID.sub(lambda found: _record(known, found), line))
        text = FOLDER.sub("", END.sub("2026-11-23 12:00 UTC", text))
        text = COMMIT_ID.sub(lambda found: _commit(known, found[0]), text)
        events.append([round(seconds, 2), "o", f"{_colored(text)}\r\n"])
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in [HEADER, *events])


def _record(known: dict[str, str], found: re.Match[str]) -> str:
    """Return the fixed id for a real one: the same for each mention, numbered by first appearance."""
    digest = hashlib.sha256(f"{found[1]} {len(known)}".encode()).hexdigest()
    return known.setdefault(found[0], f"{found[1]}-{digest[:22]}")


def _commit(known: dict[str, str], found: str) -> str:
    digest = hashlib.sha256(f"commit {len(known)}".encode()).hexdigest()
    return known.setdefault(found[:7], digest[:12])[: len(found)]


def _colored(line: str) -> str:
    """Return the line in the colours of a terminal: commands are bold, headings cyan."""
    style = "36" if line.startswith("#") else "1" if PROMPT.match(line) else ""
    return f"\x1b[{style}m{line}\x1b[0m" if style else line


if __name__ == "__main__":
    sys.exit(main())
