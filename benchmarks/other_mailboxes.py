"""Other message programs for agents, see `mailboxes`."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import sqlite3
import subprocess
import time
import uuid

from .mailboxes import CALL_SECONDS, SUBJECT, TEXT, Mailbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class AgentMailCli(Mailbox):
    """agent-mail-cli."""

    name = "agent-mail-cli"
    version = "agent-mail-cli==0.5.1"
    note = "a process a call"

    def begin(self, writers: int) -> None:
        self.program = os.path.join(self.programs, "agent-mail")
        self.database = os.path.join(self.home, ".agent-mail", "mail.db")
        self._out(*self.command())
        self.read()

    def fill(self, count: int) -> None:
        row = "INSERT INTO messages (id, sender, recipient, subject, body, created, read_at) VALUES (?, ?, ?, ?, ?, ?, ?)"
        with contextlib.closing(sqlite3.connect(self.database)) as db, db:
            (at,) = db.execute("SELECT created FROM messages").fetchone()
            names = ["p:reader", *(f"p:other{number}" for number in range(19))]
            db.executemany(row, ((str(uuid.uuid4()), "p:writer", names[number % 20], SUBJECT, TEXT, at, at)
                                 for number in range(count)))  # fmt: skip

    def command(self, number: int = 0) -> list[str]:
        words = [
            "send",
            "--from",
            f"p:writer{number}",
            "--to",
            "p:reader",
            "--subject",
            SUBJECT,
            "--body",
            TEXT,
        ]
        return [self.program, *words]

    def read(self) -> str:
        return self._out(self.program, "read", "p:reader")

    def stored(self) -> int:
        with contextlib.closing(sqlite3.connect(self.database)) as db:
            return int(db.execute("SELECT count(*) FROM messages").fetchone()[0])


class Hcom(Mailbox):
    """hcom."""

    name = "hcom"
    version = "hcom==0.7.31"
    note = "a native program, a process a call"

    def begin(self, writers: int) -> None:
        self.program = os.path.join(self.programs, "hcom")
        self.reader = self._start()
        self.writers = [self._start() for _ in range(writers)]

    def _start(self) -> str:
        return self._out(self.program, "start").partition("[hcom:")[2].partition("]")[0]

    def fill(self, count: int) -> None:
        others = [self._start() for _ in range(19)]
        for number in range(count):  # by its own command: its tables depend on each other
            to = [self.reader, *others][number % 20]
            self._out(*self._send(self.writers[0], to))
        with contextlib.suppress(subprocess.CalledProcessError):  # its exit status without messages
            while self.read():  # it returns a few at a time
                continue

    def _send(self, sender: str, to: str) -> list[str]:
        return [self.program, "send", "--name", sender, f"@{to}", "--intent", "inform", "--quiet", "--", TEXT]

    def command(self, number: int = 0) -> list[str]:
        return self._send(self.writers[number], self.reader)

    def read(self) -> str:
        return self._out(self.program, "listen", "--timeout", "1", "--json", "--name", self.reader)

    def stored(self) -> int:
        with contextlib.closing(sqlite3.connect(os.path.join(self.home, ".hcom", "hcom.db"))) as db:
            return int(db.execute("SELECT count(*) FROM events WHERE type = 'message'").fetchone()[0])


class McpAgentMail(Mailbox):
    """mcp-agent-mail, with its HTTP server."""

    name = "mcp-agent-mail"
    version = "mcp-agent-mail==0.1.0"  # MIT; later versions and forks have other licences
    note = "a warm server, a request a call; its `fetch_inbox` marks nothing"
    each = 3

    def begin(self, writers: int) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.database = os.path.join(self.home, "storage.sqlite3")
        self.environment |= {
            "DATABASE_URL": f"sqlite+aiosqlite:///{self.database}", "STORAGE_ROOT": os.path.join(self.home, "store"),
            "LLM_ENABLED": "false", "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LOG_RICH_ENABLED": "false", "TOOLS_LOG_ENABLED": "false",
        }  # fmt: skip
        serve = [os.path.join(self.programs, "python"), "-m", "mcp_agent_mail.http", "--port", str(self.port)]
        self.server = subprocess.Popen(
            [*serve, "--log-level", "error"], cwd=self.home, env=self.environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.pid = self.server.pid
        for _ in range(600):
            with contextlib.suppress(OSError):
                self._call("health_check")
                break
            time.sleep(0.2)
        for name in ("reader", *(f"writer{number}" for number in range(writers))):
            self._call("register_agent", project_key="/p", program="bench", model="none", name=name)
        self.sending(0)()

    def _call(self, tool: str, **values: object) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=CALL_SECONDS)
        with contextlib.closing(connection):
            asked = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": tool, "arguments": values},
            }
            kinds = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
            connection.request("POST", "/mcp/", json.dumps(asked), kinds)
            said = json.loads(connection.getresponse().read())
        if "error" in said or said["result"].get("isError"):
            raise RuntimeError(str(said)[:500])
        return said["result"]["content"]

    def fill(self, count: int) -> None:
        with contextlib.closing(sqlite3.connect(self.database)) as db, db:
            (first,) = db.execute("SELECT max(id) FROM messages").fetchone()
            agents = dict(db.execute("SELECT name, id FROM agents"))
            columns = "project_id, sender_id, subject, body_md, importance, ack_required, created_ts"
            others = [agents["reader"], *(id for name, id in agents.items() if name != "reader")][:20]
            for number in range(first + 1, first + 1 + count):
                copy = f"INSERT INTO messages (id, {columns}) SELECT ?, {columns} FROM messages WHERE id = ?"
                db.execute(copy, (number, first))
                row = (number, others[number % len(others)])
                db.execute(
                    "INSERT INTO message_recipients (message_id, agent_id, kind) VALUES (?, ?, 'to')", row
                )

    def sending(self, number: int) -> Callable[[], None]:
        return lambda: (
            self._call(
                "send_message",
                project_key="/p",
                sender_name=f"writer{number}",
                to=["reader"],
                subject=SUBJECT,
                body_md=TEXT,
            )
            and None
        )

    def read(self) -> str:
        (content,) = self._call(
            "fetch_inbox", project_key="/p", agent_name="reader", limit=5, include_bodies=True
        )
        return str(content["text"])

    def stored(self) -> int:
        with contextlib.closing(sqlite3.connect(self.database)) as db:
            return int(db.execute("SELECT count(*) FROM messages").fetchone()[0])

    def end(self) -> None:
        self.server.terminate()
        self.server.wait(20)
