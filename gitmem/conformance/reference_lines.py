"""Which lines count, as a simple program: the rules of docs/format.md on ids, addresses, attestations and forgetting."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..text import ed25519
from .signed_lines import DOMAIN, SALT_MARK, bound, compact, line_hash, reduced, url64, writer_id

OWN_IDS = {"signal": "signal_id", "forget": "forget_id", "trust": "trust_id"}  # of the kinds that cases use
SPEAKERS = ("sender_identity", "sender_session", "reader_identity", "reader_session", "via", "session_id",
            "agent_identity", "harness_session")  # fmt: skip
NAMES = ["at", "kind", "writer", "schema_version", "key", "clone", "number", "before", "lines", "signature"]
FORMS = {
    "kind": "attestation",
    "schema_version": r"A2A\.V1",
    "clone": "[a-z0-9]{1,64}",
    "number": "[1-9][0-9]{0,8}",
    "before": "[0-9a-f]{32}",
}
HASHES_MAX = 9_000


class SignedLines:
    """The verdicts on all lines of a log, a function of the set of lines."""

    def judge(self, lines: Iterable[str]) -> list[str]:
        """Return the lines that count, in the order of their bytes; of those that are forgotten the reduced form."""
        found = {*lines}
        records = {line: record for line in found if (record := self.record(line)) is not None}
        attested = {pair for line in found for pair in self.attested(line)}
        signed = [line for line, record in records.items() if self.is_signed(line, record, attested)]
        grants = [records[line] for line in signed if records[line].get("event") == "grant"]
        counts = {line for line in signed if self.may_speak(records[line], grants)}
        forgotten = {
            (bytes.fromhex(each), records[line].get("writer"))
            for line in counts
            if records[line]["kind"] == "forget"
            for each in records[line]["lines"]
        }
        return sorted(
            {
                reduced(line) if is_forgotten else line
                for line in counts
                for is_forgotten in [self.is_forgotten(line, records[line], forgotten)]
                if is_forgotten or "texts" not in records[line]
            }
        )

    def is_signed(
        self, line: str, record: Mapping[str, Any], attested: Iterable[tuple[bytes, str | None]]
    ) -> bool:
        """Return whether the writer of a line has attested it; of a line without one, whether anybody has."""
        whose = {writer for each, writer in attested if each == line_hash(line)}
        return record["writer"] in whose if "writer" in record else bool(whose)

    def is_forgotten(
        self, line: str, record: Mapping[str, Any], forgotten: Iterable[tuple[bytes, str | None]]
    ) -> bool:
        """Return whether the writer of a line has forgotten it."""
        return (line_hash(line), record.get("writer")) in forgotten

    def record(self, line: str) -> dict[str, Any] | None:
        """Return the record of a line with ids of its writer, and addresses of some writer; None for others and attestations."""
        record: dict[str, Any] = json.loads(line)
        writer = record.get("writer", "")
        behind = [*record][[*record].index("salt") :] if SALT_MARK in line else []
        if record["kind"] not in OWN_IDS or line.count(SALT_MARK) > 1 or (behind and "texts" in record):
            return None
        if not {*behind} <= {"salt", "message"}:
            return None
        if not writer:
            return record if self.names_nobody(record) else None
        ids = [str(record.get(name, "")) for name in (OWN_IDS[record["kind"]], *SPEAKERS)]
        if all(self.is_own_id(each, writer) and self.is_address(each, writer) for each in ids):
            return record
        return None

    def names_nobody(self, record: Mapping[str, Any]) -> bool:
        """Return whether no field but a text has an id, an address or a named thread of a writer."""
        values = [value for name, value in record.items() if name not in ("salt", "message")]
        texts = [each for value in values for each in (value if isinstance(value, list) else [value])]
        return not any(
            re.fullmatch("[a-z]+-[a-z0-9]{22}|.*@[0-9a-hjkmnp-tv-z]{16}", str(each)) for each in texts
        )

    def is_own_id(self, id: str, writer: str) -> bool:
        """Return whether an id is free, or bound to a writer."""
        return not re.fullmatch("(sig|sess|forget|trust)-[a-z0-9]{22}", id) or bound(id[:-12], writer) == id

    def is_address(self, address: str, writer: str) -> bool:
        """Return whether words name a writer where the line does, and none where it does not."""
        words, named = parted(address)
        return not is_words(words) or bool(named) == bool(writer)

    def may_speak(self, record: Mapping[str, Any], grants: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether grants lead from the writer of each address that a line has to the writer of the line."""
        for words, named in (parted(str(record.get(name, ""))) for name in SPEAKERS):
            allowed, before = {named}, set[str]()
            while allowed != before:
                before = set(allowed)
                fit = (each for each in grants if words in (each.get("words") or [words]))
                allowed |= {each["other"] for each in fit if each.get("writer") in before}
            if named and record.get("writer") not in allowed:
                return False
        return True

    def attested(self, line: str) -> set[tuple[bytes, str | None]]:
        """Return each hash that a valid attestation has, with its writer; nothing for any other line."""
        fields: dict[str, Any] = json.loads(line)
        expected = [name for name in NAMES if name != "before" or fields.get("number") != "1"]
        if (
            compact(fields) != line
            or [*fields] != expected
            or not all(isinstance(each, str) for each in fields.values())
        ):
            return set()
        key, hashes, signature = (unurl64(fields[name]) for name in ("key", "lines", "signature"))
        some = [hashes[start : start + 16] for start in range(0, len(hashes), 16)]
        is_valid = (
            all(re.fullmatch(form, fields[name]) for name, form in FORMS.items() if name in fields)
            and fields["writer"] == writer_id(key)
            and 0 < len(some) <= HASHES_MAX
            and not len(hashes) % 16
            and some == sorted({*some})
            and ed25519.verify(key, signature, (DOMAIN + line.rpartition(',"signature":"')[0]).encode())
        )
        return {(each, fields["writer"]) for each in some} if is_valid else set()


def is_words(text: str) -> bool:
    """Return whether a text is an agent identity or a person, and so belongs to a writer."""
    return text.count(":") == 2 or text.startswith("human:")


def parted(address: str) -> tuple[str, str]:
    """Return the words of an address and the writer that it names; "" for none."""
    words, mark, named = address.rpartition("@")
    is_named = bool(mark and re.fullmatch("[0-9a-hjkmnp-tv-z]{16}", named)) and is_words(words)
    return (words, named) if is_named else (address, "")


def unurl64(text: str) -> bytes:
    """Return the bytes of a text of `url64`; nothing for another form of them."""
    try:
        found = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        return b""
    return found if url64(found) == text else b""
