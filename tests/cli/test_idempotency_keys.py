"""A repeated idempotency key is the same signal, task or call, or is refused: no second text or value is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.records.table import KEYED
from tests.cli.conftest import Run

Start = Callable[..., str]
SIGNAL = ("signal", "Deploy", "--to", "Bohr")
TASK = ("delegate", "Deploy", "--to", "Bohr", "--role", "implementer/test", "--scope", "paths=src/**")
CALL = ("call", "Bohr", "Deploy", "--no-wait")


def changed(words: tuple[str, ...], more: tuple[str, ...]) -> list[str]:
    """Return a command with other values of options that it has, and with others."""
    left = list(words)
    for option, value in zip(more[::2], more[1::2], strict=True):
        if option in left:
            left[left.index(option) + 1] = value
        else:
            left += [option, value]
    return left


@pytest.mark.parametrize(
    ("words", "pairs"),
    [
        (SIGNAL, [
            ("signal", "Other"), ("--to", "Curie"), ("--intent", "propose"), ("--wu", "WU-8"), ("--wu", "#8"), ("--lane", "x"),
            ("--initiative", "x"), ("--target-role", "reviewer"), ("--delegation-id", "task-abcd"), ("--artifact", "b.txt"),
        ]),
        (CALL, [("Bohr", "Other"), ("--var", "rate=8")]),
    ],
    ids=["signal", "call"],
)  # fmt: skip
def test_another_value_of_any_field_is_refused_and_named(
    run: Run, start: Start, repo: Path, words: tuple[str, ...], pairs: list[tuple[str, str]]
) -> None:
    planck = start("Planck")
    start("Bohr", "--role", "implementer/test")
    start("Curie", "--role", "implementer/test")
    (repo / "brief.md").write_text("Do it.\n")
    key = ("--idempotency-key", "k1")
    first = run(*words, *key, "-q" if words != CALL else "--json", session=planck)
    assert first.status == 0, first
    said = run(*words, *key, session=planck)
    assert "already recorded" in said.out + said.err
    before = run("log", "--json", session=planck).json
    for more in pairs:
        again = run(*changed(words, more), *key, session=planck)
        assert again.status == 2, (more, again)
        assert "Nothing was written" in again.err
        assert "k1" in again.err or "idempotency key" in again.err
        assert run("log", "--json", session=planck).json == before, more
        back = run(*words, *key, session=planck)
        assert back.status == 0, "the first one is repeated as before"


def test_fields_are_compared_unless_their_model_excepts_them() -> None:
    """So is each field that a model gets later."""
    from gitmem.records import kinds

    for kind, names in KEYED.items():
        fields = {name: kinds.known_of(field) for name, field in kinds.model(kind).model_fields.items()}
        left_out = {"at", "kind", "writer", "schema_version", "texts", f"{kind}_id", "idempotency_key"}
        assert set(names) == {name for name, known in fields.items() if not known.may_differ} - left_out


def test_a_keyed_answer_to_a_task_may_be_repeated(run: Run, start: Start) -> None:
    """Its task is found as it is recorded, so a repetition does not name it."""
    planck, bohr = start("Planck"), start("Bohr", "--role", "implementer/test")
    run(*TASK, session=planck)
    asked = run("inbox", "--json", session=bohr).json["signals"][-1]["signal_id"]
    words = ("signal", "no time", "--reply-to", asked, "--intent", "reject", "--idempotency-key", "r1")
    assert run(*words, session=bohr).status == 0
    again = run(*words, session=bohr)
    assert (again.status, "already recorded" in again.out) == (0, True), again
