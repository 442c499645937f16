"""Which lines are beginnings of others is found without keeping the others."""

from __future__ import annotations

import random

import pytest

from gitmem.doctor.log_lines import torn


def whole(line: bytes) -> bool:
    return line.endswith(b"}")


@pytest.mark.parametrize("seed", range(20))
def test_as_many_are_found_as_by_comparing_each_with_each(seed: int) -> None:
    """Beginnings of beginnings, with others between them and their whole, in any order."""
    dice = random.Random(seed)
    lines = {b"{" + bytes(dice.choices(b"ab", k=dice.randint(1, 8))) + b"}" for _ in range(12)}
    suspects = {line[: dice.randint(1, len(line) - 1)] for line in lines if dice.random() < 0.7}
    suspects |= {b"{" + bytes(dice.choices(b"abc", k=dice.randint(1, 8))) for _ in range(8)}
    there = [line for line in lines if dice.random() < 0.5] + sorted(suspects)
    dice.shuffle(there)

    found = torn(suspects, there, whole)

    assert found == {
        each for each in suspects if any(whole(line) and line.startswith(each) for line in there)
    }


def test_bytes_that_are_no_text_are_compared_as_well() -> None:
    """A line may be torn in the middle of a character."""
    line = "{ä}".encode()
    assert torn([line[:2], line[:1] + b"\xff"], [line], whole) == {line[:2]}


def test_few_lines_are_read() -> None:
    """Of those between two suspects only the lowest counts."""
    asked: list[bytes] = []

    def note(line: bytes) -> bool:
        asked.append(line)
        return whole(line)

    assert torn([b"{b"], [b"{%d}" % each for each in range(100)], note) == set()
    assert torn([b"{1"], sorted(b"{%d}" % each for each in range(100)), note) == {b"{1"}
    assert asked == [b"{10}"]
