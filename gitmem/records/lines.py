"""The one-line form: a record to bytes, and bytes to a record.

`{"at":"2026-11-21T20:00:00.123456Z","kind":"signal",…}`: fields in the order of the model, without empty ones,
then unknown fields unchanged, then a salt and the texts.

Records are validated by the table that is generated from the models. It says "certainly valid" or "ask the models", never
"invalid": importing pydantic takes seven times as long as starting an empty Python. So it may accept less than the models
do, but nothing that they reject, and only they reject records.
"""

from __future__ import annotations

import time

from ..errors import RecordError, SecretError
from ..text.addresses import is_words, of_writer, spoken_for, suffix_of, writer_of
from ..text.digests import ALPHABET
from ..text.secrets import find_in, may_hold_secret
from ..text.strict_json import quote
from ..text.strict_json import read as read_json
from .ids import is_bound, is_of_somebody, is_time, unit_key
from .table import ADDRESSES, FIELDS, FILLED, FIRST_OF, MODELS, OWN, REQUIRED, TEXTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from .record_types import AnyRecord

LINE_MAX_BYTES = 256 * 1024
VERSION = "A2A.V1"
DEPTH = 32  # of lists and objects in unknown fields
SALT_CHARACTERS = 26
_OWN = ("at", "kind", "created_at", "read_at", "writer", "salt", "texts")  # callers must not pass these
_SALT, _TEXTS = ',"salt":"', ',"texts":"'
FORGOTTEN = "(forgotten)"  # what a text is read as that was forgotten


def line(
    kind: str,
    at: int,
    fields: Mapping[str, object],
    *,
    allow_secret: bool = False,
    writer: str | None = "",
    salt: str = "",
    may_have: Callable[[str], bool] | None = None,
) -> bytes:
    """Return the canonical line of a record, without LF.

    Args:
        kind: One of `gitmem.records.KINDS`.
        at: The time of the line, in microseconds since 1970-01-01 UTC.
        fields: The record's fields without its time and kind. Empty ones count as missing.
        allow_secret: Whether text that looks like a secret is allowed.
        writer: The id of the key that will attest the line; "" for what another tool recorded. None only checks the fields: they may
            have ids of any writer.
        salt: `SALT_CHARACTERS` random characters of base32 for a record with texts, so that they can be forgotten.
        may_have: Tells whether the line may have an address of another writer as its own; by default it has none.

    Raises:
        RecordError: A field is missing, invalid or too long; the message names it.
        SecretError: A text looks like a secret.
    """
    if kind not in MODELS:
        raise RecordError(f"{kind!a} is not a kind of record; the kinds are {', '.join(MODELS)}")
    record = _prepared(kind, fields)
    stamp = format_time(at)
    accepted_by_table = is_certainly_valid(kind, record, writing=True)
    if not accepted_by_table:
        _check_by_models(kind, stamp, record)
    of_another = "" if writer is None else field_of_another(kind, record, writer)
    if writer and not of_another and (spoken := spoken_for(map(record.get, ADDRESSES[kind]), writer)):
        refused = {each for each in spoken if may_have is None or not may_have(each)}
        of_another = next((name for name in ADDRESSES[kind] if record.get(name) in refused), "")
    if of_another:
        raise RecordError(
            _another_sentence(kind, record, writer, of_another),
            hint="It was made under another key: start a session under this one with `gitmem session start`."
            if str(record[of_another]).startswith("sess-")
            else "",
        )
    parts: list[str] = []
    last: list[str] = []
    texts = TEXTS.get(kind, ())
    for name, value in record.items():
        part = f"{quote(name)}:{quote(value) if type(value) is str else as_json(value)}"
        (last if name in texts else parts).append(part)
    if not allow_secret and (not accepted_by_table or may_hold_secret(record.values())):
        _refuse_secrets(kind, record)
    if writer:
        parts.insert(0, f'"writer":"{writer}"')
    salted = [f'"salt":"{salt}"'] if salt and last else []
    whole = f'{{"at":"{stamp}","kind":"{kind}",{",".join([*parts, *salted, *last])}}}'
    if whole.count(_SALT) > len(salted):
        raise RecordError(f"The {kind} has a field salt, which gitmem alone writes; give it another name")
    content = whole.encode()
    if len(content) > LINE_MAX_BYTES:
        raise RecordError(
            f"The {kind} would be a line of {len(content)} bytes, and at most {LINE_MAX_BYTES} are allowed"
        )
    return content


OF_OTHERS = ("agent", "target_agent", "recipients", "veto")  # fields with addresses of anybody


def addressed(
    kind: str, fields: Mapping[str, Any], writer: str, own: Callable[[str, str], str] = of_writer
) -> Mapping[str, Any]:
    """Return the fields of a record with a writer in each address that names none: such words mean the writer's own.

    Args:
        own: Returns the address that words are if a writer says them.
    """
    changed: dict[str, Any] = {}
    for name in (*ADDRESSES[kind], *OF_OTHERS):
        value = fields.get(name)
        if isinstance(value, str):
            changed[name] = own(value, writer)
        elif isinstance(value, (list, tuple)):
            changed[name] = [own(each, writer) if isinstance(each, str) else each for each in value]
    return {**fields, **changed}


def read(line: bytes) -> AnyRecord | None:
    """Return the record in a line of the log, or None if this version can't read it.

    Defaults are filled in, and a deprecated field replaces its missing successor. Reading is more lenient than writing,
    as the contract specifies. The log has validated the outer form; it is not validated again. No line raises an error: a
    bad one must not affect others.
    """
    try:
        record = _parsed(line)
        if record is None:
            return None
        kind = record["kind"]
        if record.get("schema_version", VERSION) != VERSION or kind not in MODELS:
            return None
        _fill(kind, record)
        if (
            is_certainly_valid(kind, record, writing=False) or not _model_error(record)
        ) and not field_of_another(kind, record, record.get("writer")):
            return record  # type: ignore[return-value]  # what was just checked
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
        pass
    return None


def explain_unreadable(line: bytes) -> str | None:
    """Return as a sentence why `read` can't read a line, or None if it can."""
    record = _parsed(line)
    if record is None:
        return (
            "The line is not one JSON object with unique and plain names, valid characters, its own time first, "
            "and nothing but texts after its only salt"
        )
    kind = record["kind"]
    if kind not in MODELS:
        return f"The kind {ascii(kind)[:80]} is unknown to this version"
    version = record.get("schema_version", VERSION)
    if version != VERSION:
        return f"The schema_version {ascii(version)[:80]} is not {VERSION}, the one that this version reads"
    _fill(kind, record)
    sentence = _model_error(record)
    name = "" if sentence else field_of_another(kind, record, record.get("writer"))
    return _another_sentence(kind, record, record.get("writer"), name) if name else sentence


def _prepared(kind: str, fields: Mapping[str, object]) -> dict[str, object]:  # noqa: C901  (one pass over the fields)
    """Return the fields as they are written, in the order of the line."""
    for old, new in FIRST_OF[kind].items():
        fields = _with_old_name(kind, fields, old, new)
    specs, required, filled = FIELDS[kind], REQUIRED[kind], FILLED[kind]
    record: dict[str, object] = {}
    for name in ("writer", "texts"):
        if name in fields:
            raise RecordError(f"The {kind} has an invalid field: {name}; gitmem adds it itself")
    for name, spec in specs.items():
        value = fields.get(name)
        if value is None:
            if name in filled and name not in required:
                record[name] = filled[name]
        elif (
            value
            or name in required  # for the error message that it is empty
            or not isinstance(value, (str, bool, list, tuple, dict))
            or (spec[0] == "list" and spec[1])
        ):
            record[name] = value
        elif name in filled:
            record[name] = filled[name]
    for name, value in fields.items():
        if name not in specs:
            if name in _OWN or not isinstance(name, str):
                raise RecordError(
                    f"The {kind} has an invalid field: {name}; gitmem adds time, kind, writer and salt itself"
                )
            record[name] = value
    return record


def _with_old_name(kind: str, fields: Mapping[str, object], old: str, new: str) -> Mapping[str, object]:
    """Return the fields with both the deprecated field and the list that replaced it, each filled from the other."""
    entries, first = fields.get(new), fields.get(old)
    if not entries:
        return {**fields, new: [first]} if first else fields
    if not isinstance(entries, (list, tuple)):
        return fields
    if first and first != entries[0]:
        raise RecordError(f"The {kind}'s {old} differs from the first entry of {new}; give only {new}")
    return {**fields, old: entries[0]}


def _check_by_models(kind: str, stamp: str, record: Mapping[str, object]) -> None:
    """Raise `RecordError` if the models reject the record, or JSON can't represent it."""
    from .kinds import first_error

    for name, value in record.items():
        if not (is_json_safe(name) and is_json_safe(value)):
            raise RecordError(_not_json_sentence(kind, name))
    sentence = first_error({"at": stamp, "kind": kind, **record}, writing=True)
    if sentence:
        raise RecordError(sentence)


def _model_error(record: Mapping[str, object]) -> str | None:
    """Return the error that the models find in a record that was read, or None if it is valid."""
    from .kinds import first_error

    for name, value in record.items():
        if not (is_json_safe(name) and is_json_safe(value)):
            return _not_json_sentence(str(record["kind"]), name)
    return first_error(record, writing=False)


# Start of ids, or field with an address → the last one that was accepted, and its writer. Most lines are of the session of the one before.
_last_own: dict[str, tuple[str, str]] = {}


def field_of_another(kind: str, record: Mapping[str, Any], writer: str | None) -> str:
    """Return the first field with an id or address that only another writer's lines may have there; "" if there is none.

    A line with a writer may have addresses of one other: whether that one allows it is asked of the index, see `addresses.spoken_for`.

    Args:
        kind: Its kind.
        record: A valid record.
        writer: The writer of its line. Without one no field may have what is a writer's: history names history alone.
    """
    if not writer:
        return _field_of_a_writer(kind, record)
    for name, start, length, but_for in OWN[kind]:
        id = record.get(name)
        if (
            id is None
            or len(id) != length
            or not id.startswith(start)
            or (id, writer) == _last_own.get(start)
        ):
            continue
        if is_bound(id, writer):
            _last_own[start] = (id, writer)
        elif is_of_somebody(start[:-1], id) and not (but_for and record.get("event") == but_for):
            return name
    other = ""
    for name in ADDRESSES[kind]:
        address = record.get(name)
        if address is None or (address, writer) == _last_own.get(name):
            continue
        named = writer_of(address)
        if named == writer or not (named or is_words(address)):
            _last_own[name] = (address, writer)
        elif not named or other not in ("", named):
            return name
        else:
            other = named
    return ""


def _field_of_a_writer(kind: str, record: Mapping[str, Any]) -> str:
    """Return the first field but its texts in which a record has an id or address of any writer; "" if there is none."""
    for name, value in record.items():
        if name not in FIELDS[kind] or name in TEXTS.get(kind, ()):
            continue
        for each in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(each, str) and (suffix_of(each) or is_of_somebody(each.partition("-")[0], each)):
                return name
    return ""


def _another_sentence(kind: str, record: Mapping[str, Any], writer: str | None, name: str) -> str:
    """Return as a sentence that a record has an id or address of another writer in a field."""
    if not writer:
        return f"The {kind}'s {name} must name no id or address of a writer, as the line names none: {record[name]!a}"
    what = "an address" if writer_of(record[name]) or is_words(record[name]) else "an id"
    return f"The {kind}'s {name} must be {what} of its writer {writer}, not {record[name]!a}"


def _not_json_sentence(kind: str, name: str) -> str:
    what = (
        "has a value that JSON in UTF-8 cannot represent, such as an unpaired surrogate, NaN or deep nesting"
    )
    return f"The {kind}'s {ascii(name)[1:-1]} {what}"


def as_json(value: object) -> str:
    """Return a value as compact JSON; characters outside ASCII are not escaped.

    Raises:
        ValueError: The value has a NaN or an infinite number.
    """
    if isinstance(value, str):
        return quote(value)
    if value is True:
        return "true"
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return f"[{','.join(map(quote, value))}]"
    import json

    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _refuse_secrets(kind: str, record: Mapping[str, object]) -> None:
    for name, value in record.items():
        found = find_in([name, value])
        if found:
            where = name if name in FIELDS[kind] else "record"
            raise SecretError(f"The {kind}'s {where} seems to contain {found.what} at character {found.at}")


def format_time(micros: int) -> str:
    """Return a time in microseconds since 1970 as ISO 8601, in UTC.

    Raises:
        RecordError: The time is before 1970 or after 9999.
    """
    seconds, fraction = divmod(micros, 1_000_000)
    if not 0 <= seconds < 253_402_300_800:
        raise RecordError(f"The time {micros} microseconds is not between the years 1970 and 9999")
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{fraction:06d}Z"


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Return the one object of a line, with a kind and the line's own time; None if it is not valid."""
    if len(line) > LINE_MAX_BYTES or b"\r" in line or not line.startswith(b'{"at":"'):
        return None
    try:
        text = line.decode()
        record = _fields(text) if is_time(text[7:34]) else None
    except (ValueError, RecursionError):
        return None
    if type(record) is not dict or type(record.get("kind")) is not str:
        return None
    if record.get("at") != text[7:34] or (
        "\\u" in text and not (is_json_safe(record) and _has_plain_names(text))
    ):
        return None
    return record


def _fields(text: str) -> Any:
    """Parse a line; reject duplicate names: different readers could use different values.

    What comes before the salt and what comes after it is parsed as an object each: so the salt is a field of the line itself.
    """
    at = text.find(_SALT)
    if at < 0:
        record = read_json(text, once=True)
        if "texts" in record and not _is_reduced(text, record):
            raise ValueError("no reduced form")
        return record
    record, texts = read_json(f"{text[:at]}}}", once=True), read_json(f"{{{text[at + 1 :]}", once=True)
    salt, kind = texts.pop("salt"), str(record.get("kind"))
    if len(salt) != SALT_CHARACTERS or salt.strip(ALPHABET) or _SALT in text[at + 1 :] or "texts" in record:
        raise ValueError("invalid salt")
    names = TEXTS.get(kind, ())
    for name in texts:  # a newer version may know more texts
        if name in record or (name not in names and (name in _OWN or name in FIELDS.get(kind, ()))):
            raise ValueError("not a text")
    return {**record, **texts}


def _is_reduced(text: str, record: Mapping[str, object]) -> bool:
    """Return whether a line with a field `texts` is the reduced form of one that its writer can have attested."""
    texts = record["texts"]
    return text.endswith(f'{_TEXTS}{texts}"}}') and "writer" in record and record.get("kind") in TEXTS


# A letter, a digit or `_` in a name that has only these.
_ESCAPED_NAME = r'[{,]\s*"\w*\\u00(?:3[0-9]|[46][1-9a-f]|[57][0-9a]|5f)(?:\w|\\u00[0-9a-f]{2})*"\s*:'


def _has_plain_names(text: str) -> bool:
    """Return whether no name of a field is written with escapes: old versions of SQLite do not find such a field."""
    import re

    return re.search(_ESCAPED_NAME, text, re.ASCII | re.IGNORECASE) is None


def _fill(kind: str, record: dict[str, Any]) -> None:
    """Fill in the defaults, and for a missing list the entry of its deprecated field."""
    for old, new in FIRST_OF[kind].items():
        if new not in record and record.get(old) is not None:
            record[new] = [record[old]]
    for name, value in FILLED[kind].items():
        if name not in record:
            record[name] = list(value) if isinstance(value, tuple) else value
    if record.get("texts") is not None:
        for name in TEXTS[kind]:
            record.pop(name, None)
            if FIELDS[kind][name][0] == "text":
                record[name] = FORGOTTEN


# When reading and when writing: kind → field → its last text that was accepted. Most records repeat texts of the one before.
_last_accepted: tuple[dict[str, dict[str, str]], dict[str, dict[str, str]]] = ({}, {})


def is_certainly_valid(kind: str, fields: Mapping[str, object], *, writing: bool) -> bool:  # noqa: C901  (one pass over the fields)
    """Return whether these fields of a known kind are certainly valid; if False, the models must decide.

    Fields that the contract does not define are kept. When writing, the models decide about them.
    """
    specs = FIELDS[kind]
    for name in REQUIRED[kind]:
        if name not in fields:
            return False
    last = _last_accepted[writing].setdefault(kind, {})
    for name, value in fields.items():
        if type(value) is str and last.get(name) == value:
            continue
        spec = specs.get(name)
        if spec is None:
            if writing or not is_json_safe(value):
                return False
        elif value is None:
            if not spec[1]:
                return False
        elif not is_valid_value(spec, value, writing):
            return False
        elif type(value) is str:
            last[name] = value
    return True


def fits(kind: str, name: str, value: object) -> bool:
    """Return whether a value is certainly valid for a field of a known kind."""
    return is_valid_value(FIELDS[kind][name], value, writing=True)


def is_json_safe(value: object, depth: int = 1) -> bool:
    """Return whether JSON in UTF-8 can represent the value, so that every reader gets the same value."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return False
        return True
    if isinstance(value, float):
        return value - value == 0  # False for infinities and NaN
    if isinstance(value, int):
        return value.bit_length() <= 1024
    if depth > DEPTH:
        return False
    if isinstance(value, (list, tuple)):
        return all(is_json_safe(item, depth + 1) for item in value)
    if isinstance(value, dict):
        return all(
            type(key) is str and is_json_safe(key) and is_json_safe(value[key], depth + 1) for key in value
        )
    return value is None


def is_valid_value(spec: tuple[Any, ...], value: object, writing: bool) -> bool:  # noqa: C901  (one branch for each form of a field)
    """Validate one value by (form, may be null, …), as `tools/compile_kinds.py` writes it."""
    form = spec[0]
    if form == "list":
        if type(value) is not list and type(value) is not tuple:
            return False
        item_spec = spec[2]
        for item in value:  # noqa: SIM110  (a generator costs more than the check)
            if not is_valid_value(item_spec, item, writing):
                return False
        return True
    if form == "flag":
        return type(value) is bool
    if form == "object":
        return type(value) is dict and is_json_safe(value)
    if type(value) is not str:
        return False
    if form == "choice":
        return value in spec[2]
    _, _, least, most, shape, text_rule = spec
    if not least <= len(value) <= most:
        return False
    if form == "line":
        if not value.isprintable():
            return False
        for refused in shape:
            if refused in value:
                return False
    elif form == "word":
        start, length, characters = shape
        if not value.startswith(start) or value[length:].lstrip(characters):
            return False
    elif form == "form":
        if not matches(shape, value):
            return False
    elif not is_json_safe(value):
        return False
    return not text_rule or _fits_text_rule(text_rule, value, writing)


def matches(shape: tuple[str, tuple[tuple[str, int, int], ...]], value: str) -> bool:
    """Return whether a text is the start and then these runs of characters, each matched greedily."""
    start, runs = shape
    if start:
        if not value.startswith(start):
            return False
        value = value[len(start) :]
    for characters, least, most in runs:
        rest = value.lstrip(characters)
        run = len(value) - len(rest)
        if run < least:
            return False
        value = rest if run <= most else value[most:]
    return not value


def _fits_text_rule(
    text_rule: tuple[int, str, bool, tuple[str, ...], str, bool], value: str, writing: bool
) -> bool:
    max_bytes, not_prefix, trimmed, written, not_written, real = text_rule
    if max_bytes and len(value) * 4 > max_bytes and len(value.encode()) > max_bytes:
        return False
    if not_prefix and value.startswith(not_prefix):
        return False
    if trimmed and value != value.strip():
        return False
    if writing and not_written and unit_key(value) == not_written:
        return False
    if real and not is_time(value):
        return False
    return not written or not writing or value in written
