"""Data of pages, made without a log: a day of agents of any size, from a seed."""

from __future__ import annotations

import random
from typing import Any

from gitmem.page.page_data import FORMAT

MADE = 1_790_000_000_000
DAY = 86_400_000
TYPES = ("decision", "discovery", "note", "summary")
WORDS = [
    "parser",
    "lexer",
    "schema",
    "branch",
    "review",
    "merge",
    "cache",
    "token",
    "retry",
    "timeout",
    "index",
    "lock",
    "queue",
    "test",
    "flaky",
    "rename",
    "interface",
    "option",
    "record",
    "contract",
    "migration",
    "deadline",
    "worker",
    "session",
    "rebase",
    "conflict",
    "coverage",
    "budget",
    "latency",
]
NAMES = [
    "Curie",
    "Noether",
    "Hopper",
    "Turing",
    "Lovelace",
    "Gauss",
    "Euler",
    "Franklin",
    "Meitner",
    "Ramanujan",
]


def empty() -> dict[str, Any]:
    """Return the data of a log without a line."""
    return {
        "format": FORMAT, "made": MADE, "repository": "sample", "generator": "gitmem", "filters": {}, "omitted": {}, "notes": [], "you": {},
        "agents": [], "sessions": [], "signals": [], "threads": [], "tasks": [], "claims": [], "commits": [], "branches": [],
        "nodes": [], "relations": [],
        "board": {"gates": [], "passed": [], "unread": [], "waits": [], "contested": [], "mismatches": [], "overlaps": [], "open_tasks": []},
        "statistics": {"days": [], "first_answer": {"n": 0}, "agreement": {"n": 0}, "unread_age": {"n": 0}, "unanswered": 0, "tasks": {}},
    }  # fmt: skip


def sample(agents: int = 5, signals: int = 60, nodes: int = 20, seed: int = 1) -> dict[str, Any]:
    """Return the data of a day: threads of proposals and answers, tasks, claims, commits and nodes."""
    rng = random.Random(seed)
    data = empty()
    start = MADE - DAY // 3
    span = MADE - start
    ids = [f"a{place}" for place in range(agents)]
    for place, agent in enumerate(ids):
        name = NAMES[place] if place < len(NAMES) else f"{NAMES[place % len(NAMES)]} {place}"
        data["agents"].append({"id": agent, "name": name, "identity": f"sample:client:{name.lower()}", "person": False, "client": "codex",
                               "role": ("planner", "coder", "reviewer")[place % 3], "live": place % 4 != 3, "first": start + place, "last": MADE - place * 60_000})  # fmt: skip
        begun = start + rng.randrange(span // 6)
        data["sessions"].append({"id": f"sess-{place}", "agent": agent, "name": name, "start": begun, "last": MADE - 1000, "live": place % 4 != 3,
                                 "status": "live" if place % 4 != 3 else "idle", "wu": f"WU-{place % 7}", "branch": f"work/{name.lower()}", "activity": sentence(rng, 3)})  # fmt: skip
    _talk(data, rng, ids, signals, start, span)
    _work(data, rng, ids, signals, start, span)
    _remember(data, rng, ids, nodes, start, span)
    return data


def sentence(rng: random.Random, words: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(words)).capitalize()


def _talk(
    data: dict[str, Any], rng: random.Random, ids: list[str], signals: int, start: int, span: int
) -> None:
    times = sorted(start + rng.randrange(span) for _ in range(signals))
    thread: list[str] = []
    for place, at in enumerate(times):
        sender = rng.choice(ids)
        if not thread or len(thread) >= 5:
            thread = []
            text = f"{sentence(rng, 9)} ({place})"
            data["threads"].append({"id": f"thread-{place}", "root": f"sig-{place}", "title": text, "wu": f"WU-{place % 7}", "signals": 0,
                                    "state": rng.choice(["converged", "open", "rejected", "countered"]),
                                    "stands": [(each, rng.choice(["agree", "pending", "counter"])) for each in rng.sample(ids, min(2, len(ids)))]})  # fmt: skip
        else:
            text = f"{sentence(rng, 9)} ({place})"
        others = [each for each in ids if each != sender] or ids
        intent = (
            rng.choice(["PROPOSE", "INFO"])
            if not thread
            else rng.choice(["INFO", "AGREE", "AGREE", "COUNTER", "REJECT"])
        )
        to = rng.sample(others, min(len(others), rng.choice([0, 1, 1, 2])))
        signal: dict[str, Any] = {"id": f"sig-{place}", "at": at, "from": sender, "to": to, "broadcast": not to, "intent": intent, "text": text,
                  "thread": data["threads"][-1]["id"], "wu": data["threads"][-1]["wu"], "ack": False,
                  "receipts": [(each, "delivered", at + 5000) for each in to]}  # fmt: skip
        if thread:
            signal["reply"] = rng.choice(thread)
        thread.append(signal["id"])
        data["threads"][-1]["signals"] += 1
        data["signals"].append(signal)
    for signal in data["signals"][-max(1, signals // 30) :]:
        if signal["to"]:
            data["board"]["waits"].append({"waiter": signal["from"], "owes": signal["to"][0], "yours": False, "ways": [], "what": "answer", "to_do": "to answer", "text": signal["text"], "wu": signal["wu"],
                                           "since": signal["at"], "id": signal["id"], "thread": signal["thread"], "commands": [f"gitmem thread {signal['thread']}"]})  # fmt: skip
    data["board"]["unread"] = [{"agent": each, "count": 3, "units": {"WU-1": 2, "": 1}} for each in ids]
    for signal in [each for each in data["signals"] if each["to"]][:1]:
        reader, at = signal["to"][0], signal["at"]
        blocker = {
            "signal": signal["id"],
            "why": "unread",
            "from": signal["from"],
            "at": at,
            "thread": signal["thread"],
        }
        data["board"]["gates"] = [
            {"agent": reader, "wu": "WU-1", "unread": 1, "unanswered": 0, "blockers": [blocker]}
        ]
        data["board"]["passed"] = [{"id": "audit-0", "at": at + 60_000, "agent": reader, "rule": "gate", "reason": "only a wording question",
                                    "wu": "WU-2", "signals": [signal["id"]], "claims": []}]  # fmt: skip
    data["statistics"].update(
        days=[{"day": f"2026-09-{day:02d}", "signals": rng.randrange(90), "agents": len(ids), "proposals": rng.randrange(20), "answers": rng.randrange(30)} for day in range(1, 22)],
        first_answer={"n": 40, "median_ms": 340_000, "p90_ms": 4_000_000}, agreement={"n": 12, "median_ms": 900_000, "p90_ms": 9_000_000},
        unread_age={"n": 7, "median_ms": 60_000, "p90_ms": 600_000}, unanswered=3, tasks={"completed": 14, "failed": 2, "canceled": 1})  # fmt: skip


def _work(
    data: dict[str, Any], rng: random.Random, ids: list[str], signals: int, start: int, span: int
) -> None:
    for place in range(max(2, signals // 12)):
        at = start + rng.randrange(span)
        done = rng.random() < 0.7
        task: dict[str, Any] = {"id": f"task-{place}", "at": at, "from": rng.choice(ids), "to": rng.choice(ids), "state": "completed" if done else "working",
                "state_text": "completed" if done else "working", "open": not done, "purpose": rng.choice(["call", "delegation", "handoff"]),
                "text": sentence(rng, 8), "wu": f"WU-{place % 7}", "thread": data["threads"][0]["id"] if data["threads"] else "", "holder": rng.choice(ids),
                "taken": at + span // 60, "blocked_by": [f"task-{place - 1}"] if place % 5 == 4 else [], "notes": []}  # fmt: skip
        if done:
            task.update(ended=at + span // 20, result=sentence(rng, 6))
        else:
            data["board"]["open_tasks"].append(task["id"])
        data["tasks"].append(task)
    for place in range(max(2, signals // 15)):
        at = start + rng.randrange(span)
        state = rng.choice(["held", "released", "expired", "contested"])
        data["claims"].append({"id": f"claim-{place}", "agent": rng.choice(ids), "paths": [f"src/{rng.choice(WORDS)}/*.py"], "mode": "edit", "start": at,
                               "until": at + span // 10, "state": state, "reason": sentence(rng, 4), "against": ["claim-0"] if state == "contested" else []})  # fmt: skip
    first, second = data["claims"][:2]
    first["state"] = second["state"] = "contested"
    sides = [{"claim": each["id"], "agent": each["agent"], "at": each["start"]} for each in (first, second)]
    overlaps = [(first["paths"][0], second["paths"][0])]
    data["board"]["contested"] = [{"sides": sides, "overlaps": overlaps, "why": "unseen"}]
    for place in range(min(2000, max(6, signals // 3))):
        branch = rng.choice(["main", "main", "work/curie", "work/noether", "fix/lexer"])
        commit: dict[str, Any] = {"id": f"{rng.getrandbits(160):040x}", "at": start + rng.randrange(span), "author": rng.choice(NAMES), "subject": sentence(rng, 6), "branches": [branch]}  # fmt: skip
        if place % 3:
            commit.update(agent=rng.choice(ids), wu=f"WU-{place % 7}", inferred=place % 9 == 1)
        data["commits"].append(commit)
    data["commits"].sort(key=lambda each: -each["at"])
    for name in dict.fromkeys(each["branches"][0] for each in data["commits"]):
        tip = next(each for each in data["commits"] if each["branches"] == [name])
        data["branches"].append({"name": name, "commit": tip["id"], "at": tip["at"]})
    data["board"]["overlaps"] = [
        {"branches": ["work/curie", "work/noether"], "paths": ["src/parser.py"], "conflicts": True}
    ]
    data["board"]["mismatches"] = [
        {"task": "task-0", "text": "asked for a reviewer, taken by a coder", "agent": ids[0]}
    ]


def _remember(
    data: dict[str, Any], rng: random.Random, ids: list[str], nodes: int, start: int, span: int
) -> None:
    for place in range(nodes):
        at = start + rng.randrange(span)
        by = rng.choice(ids)
        node: dict[str, Any] = {"id": f"mem-{place}", "type": rng.choice(TYPES), "lifecycle": "project", "status": "closed" if place % 11 == 10 else "active",
                "text": f"{sentence(rng, 10)} ({place})", "at": at, "updated": at + 1000, "agent": by, "wu": f"WU-{place % 7}", "tags": [rng.choice(WORDS)],
                "paths": [f"src/{rng.choice(WORDS)}.py"], "decay": rng.random(),
                "history": [{"at": at, "agent": by, "what": "created"}, {"at": at + 1000, "agent": rng.choice(ids), "what": "updated: text"}]}  # fmt: skip
        if place % 9 == 4:
            node["stale"] = "src/parser.py changed in 3 commits"
        data["nodes"].append(node)
        if place and rng.random() < 0.7:
            supersedes = rng.random() < 0.15
            target = max(0, place - rng.choice([1, 1, 2, 3, 7]))
            data["relations"].append({"from": node["id"], "to": f"mem-{target}", "type": "supersedes" if supersedes else rng.choice(["depends_on", "explains", "contradicts"]), "supersedes": supersedes})  # fmt: skip
            if supersedes:
                data["nodes"][target]["superseded_by"] = node["id"]
