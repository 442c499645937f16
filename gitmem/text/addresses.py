"""Addresses: the words by which agents and people are known, and the writer whose they are.

`codex:implementer:prices@3f9k2m7q1x0z8w4n` is the agent of these words of that writer. The same words of another writer are another reader.
Ids of sessions are bound to their writer by themselves, and what lines without a writer name is nobody's: these stand as they are.
"""

from __future__ import annotations

from .digests import ALPHABET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

WRITER_CHARACTERS = 16
BOUND_CHARACTERS = 22  # of an id behind its dash: one with so many is bound to a writer
PERSON = "human:"
CLIENT, CLIENT_CHARACTERS = "h-", 28  # of the published hash of a client's own id


def writer_of(address: str) -> str:
    """Return the id of the writer that an address names; "" for none."""
    writer = suffix_of(address)
    return writer if writer and is_words(address[: -WRITER_CHARACTERS - 1]) else ""


def suffix_of(text: str) -> str:
    """Return the id of a writer with which a text ends after an `@`, as addresses and names of threads do; "" for none."""
    at, writer = text[-WRITER_CHARACTERS - 1 : -WRITER_CHARACTERS], text[-WRITER_CHARACTERS:]
    return writer if at == "@" and not writer.strip(ALPHABET) else ""


def words_of(address: str) -> str:
    """Return an address without its writer."""
    return address[: -WRITER_CHARACTERS - 1] if writer_of(address) else address


def is_words(text: str) -> bool:
    """Return whether a text has the form of an agent identity, of a person or of a client, and so belongs to a writer."""
    is_client = text.startswith(CLIENT) and len(text) == CLIENT_CHARACTERS
    return text.startswith(PERSON) or text.count(":") == 2 or is_client


def of_writer(address: str, writer: str) -> str:
    """Return the address of a writer with these words; unchanged what names one, or is none that a writer can have."""
    return f"{address}@{writer}" if writer and is_words(address) and not writer_of(address) else address


# Fields that say who wrote a line. A session id in them that is bound to a writer must be bound to the line's.
WRITER_FIELDS = (
    "sender_identity",
    "sender_session",
    "reader_identity",
    "reader_session",
    "via",
    "session_id",
)
# Fields whose address of an agent, a person or a client must name the line's writer, or one other; in a line without one, none.
ADDRESS_FIELDS = (*WRITER_FIELDS, "agent_identity", "harness_session")


def spoken_for(values: Iterable[object], writer: str) -> set[str]:
    """Return the addresses of others among what a line of a writer has in `ADDRESS_FIELDS`: it counts if they allow them."""
    return {
        each
        for each in values
        if type(each) is str and "@" in each and not each.endswith(writer) and writer_of(each)
    }


_ENDS = " \t\n\"'`()[]<>{},;|=\\"  # what no address in a text contains


def shortened(text: str, short: Callable[[str], str]) -> str:
    """Return a text with each address in it as it is shown.

    Args:
        short: Returns how an address is shown.
    """
    at = text.find("@")
    while at >= 0:
        end = at + 1 + WRITER_CHARACTERS
        begin = at
        while begin and text[begin - 1] not in _ENDS:
            begin -= 1
        if not text[end : end + 1].isalnum() and writer_of(text[begin:end]):
            shown = short(text[begin:end])
            text = f"{text[:begin]}{shown}{text[end:]}"
            at = begin + len(shown) - 1
        at = text.find("@", at + 1)
    return text
