"""Addresses: the words of an agent, a person or a client, and the writer whose they are."""

from __future__ import annotations

import pytest

from gitmem.text.addresses import of_writer, shortened, words_of, writer_of

WRITER, OTHER = "3f9k2m7q1x0z8w4n", "z" * 16
CLIENT = f"h-{'0123456789abcdefghjkmnpqrs'}"
ADDRESSABLE = ["codex:implementer:prices", "human:ann@example.org", "human:root", "a:b:c@d", CLIENT]


@pytest.mark.parametrize("words", ADDRESSABLE)
def test_words_and_their_writer_make_an_address_and_come_apart_again(words: str) -> None:
    address = of_writer(words, WRITER)
    assert address == f"{words}@{WRITER}"
    assert (words_of(address), writer_of(address)) == (words, WRITER)
    assert (words_of(words), writer_of(words)) == (words, "")
    assert of_writer(address, OTHER) == address
    assert of_writer(words, "") == words


@pytest.mark.parametrize(
    "text",
    [
        "sess-3f9k2m7q1x0z",
        "gitmem",
        "lumenflow:agent-1",
        "h-2",
        "",
        "@",
        f"@{WRITER}",
        f"Planck@{WRITER}",
        "a:b:c:d",
    ],
)
def test_what_is_nobodys_words_gets_no_writer(text: str) -> None:
    assert of_writer(text, WRITER) == text
    assert (words_of(text), writer_of(text)) == (text, "")


@pytest.mark.parametrize(
    "end",
    ["@3f9k2m7q1x0z8w4", "@3f9k2m7q1x0z8w4nn", "@3F9K2M7Q1X0Z8W4N", "@3f9k2m7q1x0z8w4u", "@example.org"],
)
def test_only_sixteen_characters_of_base32_are_a_writer(end: str) -> None:
    assert writer_of(f"codex:implementer:prices{end}") == ""


def test_addresses_in_a_text_are_shown_as_they_are_told() -> None:
    text = f'from (a:b:c@{WRITER}), "human:ann@example.org@{OTHER}" and x@{WRITER} to a:b:c@{WRITER}x a:b:c@{WRITER}'
    assert shortened(text, words_of) == (
        f'from (a:b:c), "human:ann@example.org" and x@{WRITER} to a:b:c@{WRITER}x a:b:c'
    )
    asked: list[str] = []
    assert shortened(text, lambda address: asked.append(address) or address) == text
    assert asked == [f"a:b:c@{WRITER}", f"human:ann@example.org@{OTHER}", f"a:b:c@{WRITER}"]
