"""Secrets in command lines, headers and sentences: `mysql -pS3cr3t…`, `Authorization: token …`, "the password is …".

The rule for sentences is stricter than for assignments: after `password`, a sentence nearly always has another word.
"""

from __future__ import annotations

from .secrets_assigned import (
    KEYS,
    PASSWORDS,
    Found,
    _is_basic,
    _is_password,
    _is_placeholder,
    _is_uuid,
    _positions,
    _run,
    _value,
    is_random,
)

# A command, the option for its password, and whether a space may separate the option from the password.
_COMMANDS = (
    ("mysql", "-p", False), ("mariadb", "-p", False), ("sshpass", "-p", True), ("docker login", "-p", True),
    ("podman login", "-p", True), ("mongo", "-p", True), ("unzip", "-P", True), ("redis-cli", "-a", True),
)  # fmt: skip
_LINE_MAX = 160  # characters of a command line that are read
_KEY_MIN = 20  # characters of a key in a sentence
_NOUNS = (" access key", " key", " token", " value")
_LINKS = (
    " is now ", " is: ", " is ", " was ", " to ", " ist ", " est ", " es ", " é ", " è ", " to jest ", ": ", "：", "是", " = ", " -> ", " ",
)  # fmt: skip
_PASSWORD_WORDS = tuple(word for word in PASSWORDS if word not in ("pwd", "pass"))


def find(text: str, small: str) -> Found | None:  # noqa: C901  (one pass over a text)
    """Return the first presumed secret in a text as its kind and its position, or None.

    Args:
        small: The same in lower case.
    """
    if " -p" in small or " -a " in small:
        for command, option, spaced in _COMMANDS:
            for at in _positions(small, command):
                if _has_option(text[at : at + _LINE_MAX], option, spaced):
                    return "a password", at
    if "auth" in small:
        found = _authorization(text, small)
        if found:
            return found
    for word in _PASSWORD_WORDS:
        for at in _positions(small, word):
            value, sure = _said(text, small, at + len(word))
            if value and _is_generated(value, sure):
                return "a password", at
    if not any(len(word) >= _KEY_MIN for word in text.split()):
        return None
    for word in KEYS:
        for at in _positions(small, word):
            value, sure = _said(text, small, at + len(word))
            if (
                len(value) < _KEY_MIN
                or _is_placeholder(value)
                or not is_random(value, _KEY_MIN)
                or _is_uuid(value)
            ):
                continue
            if word == "secret" and len(value) == 40 and " key" in small[at : at + 20]:
                return "an AWS secret key", at
            is_digest = not value.strip("0123456789abcdef")  # without "is": a digest of something else
            if value.isalnum() and (sure or not is_digest):
                return "a secret value", at
    return None


def _has_option(line: str, option: str, spaced: bool) -> bool:
    """Return whether a command line passes a password in an option."""
    words = line.partition("\n")[0].split(" ")
    for number, word in enumerate(words):
        if not word.startswith(option):
            continue
        given = word[len(option) :]
        if not given and spaced and number + 1 < len(words):
            given = words[number + 1]
        value, quoted = _value(given, 0)
        if not given.startswith(("$", "<", "{", "%", '"$')) and not _is_placeholder(value):
            return _is_password(value, quoted, False)
    return False


def _authorization(text: str, small: str) -> Found | None:
    """Return the credentials of an `Authorization` header, of npm's `_auth` or of docker's `"auth"`."""
    for at in _positions(small, "authorization"):
        start = at + len("authorization")
        piece = text[start : start + 24].lstrip("\"'")
        if piece[:1] not in (":", "="):
            continue
        words = text[start : start + _LINE_MAX].lstrip("\"':= ").split(" ", 2)
        for word in words[:2]:
            value = _run(word, 0)
            if is_random(value, 16) and not _is_uuid(value):
                return "a secret value", at
    for name in ("_auth", '"auth"', "_authtoken"):
        for at in _positions(small, name):
            piece = text[at + len(name) : at + len(name) + 4]
            value = _run(text, at + len(name) + len(piece) - len(piece.lstrip(":= \"'")))
            if piece[:1] not in (":", "=") or value == "":
                continue
            if name == "_authtoken" and _is_uuid(value):
                return "a secret value", at
            if _is_basic(value):
                return "HTTP basic credentials", at
    return None


def _said(text: str, small: str, at: int) -> tuple[str, bool]:
    """Return the value that follows a name in a sentence, and whether a link such as `is` or `:` assigns it."""
    for noun in _NOUNS:
        if small.startswith(noun, at):
            at += len(noun)
            break
    for link in _LINKS:
        if small.startswith(link, at):
            return _value(text, at + len(link))[0], link != " "
    return "", False


def _is_generated(value: str, sure: bool) -> bool:
    """Return whether a value in a sentence can only be a password: alternating letters and digits, not a name."""
    if not 8 <= len(value) <= 64 or _is_placeholder(value) or _is_uuid(value) or not value.isascii():
        return False
    kinds = ["d" if char.isdigit() else "l" for char in value if char.isalnum()]
    groups = sum(kind == "d" and (not at or kinds[at - 1] == "l") for at, kind in enumerate(kinds))
    mixed = value.lower() != value and value.upper() != value
    if kinds.count("d") < 2 or kinds.count("l") < 3 or len(set(value)) < 6:
        return False
    if not sure and not value.strip("0123456789abcdef"):
        return False
    if any(sign in value for sign in "_-./:@") and not (sure and mixed and groups > 1):
        return False
    return groups > 1 and (mixed or kinds.count("d") > 2)
