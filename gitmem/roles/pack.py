"""Packs: the vocabulary of roles and the names of agents, in a TOML file that may be anybody's.

The built-in pack is `software-delivery.toml`; `.gitmem/roles.toml` of a work tree adds to it. An entry that breaks a
rule is left out and reported with its line, and all others count.
"""

from __future__ import annotations

import re

from ..outcome import Outcome
from ..text.name_matching import fold, is_reserved
from ..text.sanitize import sanitize
from . import file_formats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

VALUES_MAX = 100  # of each list
PROBLEMS_MAX = 20  # that are reported
ALIASES_MAX = 500
WORD = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_ALIAS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_LINE_MAX = 200  # characters
KEYS = (
    "pack",
    "builtin",
    "default_specialty",
    "default_lifecycle",
    "specialty_profiles",
    "responsibility_kinds",
    "lifecycle_roles",
    "alias",
)
ALIAS_KEYS = ("role", "legacy", "capabilities", "exec")
EXEC_MAX = 1_000  # characters of a command, which a person must be able to read before trusting it
_WORD_FORM = "1 to 64 lower-case letters, digits and dashes, a letter or digit first"


class Problem(Outcome):
    """A file or entry that does not count: where it stands, and why. `line` is None if the whole file is meant."""

    def __init__(self, path: str, line: int | None, reason: str) -> None:
        self.path = path
        self.line = line
        self.reason = reason

    @property
    def text(self) -> str:
        """The problem in one line."""
        return sanitize(f"{self.path}{f':{self.line}' if self.line else ''}: {self.reason}", keep="")


class Alias:
    """A name of an agent, and the role that it stands for.

    Attributes:
        legacy: Whether it is only understood, and never offered.
        path: The file that has it; "" for the built-in pack.
        exec: The command that answers calls to the agent of this name. It is content of the repository: see `trusted_commands`.
    """

    def __init__(self, name: str, lifecycle_role: str, specialty_profile: str) -> None:
        self.name = name
        self.lifecycle_role = lifecycle_role
        self.specialty_profile = specialty_profile
        self.legacy = False
        self.capabilities: tuple[str, ...] = ()
        self.path = ""
        self.exec: str | None = None


class Pack:
    """The roles that are known: of the built-in pack, or of that and a file.

    Attributes:
        name: The name of the pack, which records have.
        default_lifecycle: The role that is asked for where nobody states one; "" for none.
        lifecycle_roles: Each with the responsibilities of a scope that states none.
        aliases: By their folded names.
        builtin: Whether the built-in pack is part of it.
    """

    def __init__(self) -> None:
        self.name = ""
        self.builtin = True
        self.default_specialty = ""
        self.default_lifecycle = ""
        self.lifecycle_roles: dict[str, tuple[str, ...]] = {}
        self.specialty_profiles: tuple[str, ...] = ()
        self.responsibility_kinds: tuple[str, ...] = ()
        self.aliases: dict[str, Alias] = {}

    def knows(self, lifecycle_role: str | None, specialty_profile: str | None) -> bool:
        """Return whether both are in the vocabulary; None stands for any."""
        return (lifecycle_role is None or lifecycle_role in self.lifecycle_roles) and (
            specialty_profile is None or specialty_profile in self.specialty_profiles
        )

    def offered(self) -> list[Alias]:
        """Return the aliases that may be suggested, by name."""
        return sorted((each for each in self.aliases.values() if not each.legacy), key=lambda each: each.name)

    def with_builtin(self, builtin: Pack) -> Pack:
        """Return a pack of a file together with the built-in one. What both have is as in the file."""
        if not self.builtin:
            return self
        both = Pack()
        both.name = self.name or builtin.name
        both.default_specialty = self.default_specialty or builtin.default_specialty
        both.default_lifecycle = self.default_lifecycle or builtin.default_lifecycle
        both.lifecycle_roles = {**builtin.lifecycle_roles, **self.lifecycle_roles}
        both.specialty_profiles = _united(builtin.specialty_profiles, self.specialty_profiles)
        both.responsibility_kinds = _united(builtin.responsibility_kinds, self.responsibility_kinds)
        both.aliases = {**builtin.aliases, **self.aliases}
        return both


def _united(one: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other)))


def parse(text: str, path: str, builtin: Pack | None = None) -> tuple[Pack | None, list[Problem]]:
    """Read the text of a pack.

    Args:
        path: The name of the file, for problems.
        builtin: The built-in pack, which it adds to unless it says `builtin = false`.

    Returns:
        The pack, None if the text is not TOML; and what does not count.
    """
    try:
        values = file_formats.toml(text)
    except file_formats.FormatError as error:
        return None, [Problem(path, error.line, error.reason[:_LINE_MAX])]
    return _Reader(text, path).read(values, builtin)


class _Reader:
    """Makes a pack of the values of a file, and notes what is wrong with them."""

    def __init__(self, text: str, path: str) -> None:
        self._text = text
        self._path = path
        self._problems: list[Problem] = []
        self._pack = Pack()

    def read(self, values: dict[str, Any], builtin: Pack | None) -> tuple[Pack, list[Problem]]:
        """Return the pack, with the built-in one if there is one and the file does not exclude it."""
        pack = self._pack
        for key in values:
            if key not in KEYS:
                self._note(key, f"unknown key {key}; known are {', '.join(KEYS)}")
        pack.name = self._one(values, "pack", "")
        pack.builtin = self._flag(values, "builtin", default=True)
        pack.specialty_profiles = self._words(values.get("specialty_profiles", []), "specialty_profiles")
        pack.responsibility_kinds = self._words(
            values.get("responsibility_kinds", []), "responsibility_kinds"
        )
        pack.default_specialty = self._one(values, "default_specialty", "")
        known = pack.with_builtin(builtin) if builtin is not None else pack
        for name, kinds in self._table(values, "lifecycle_roles", VALUES_MAX):
            if not WORD.fullmatch(name):
                self._note(name, f"invalid lifecycle role {name}; valid are {_WORD_FORM}")
                continue
            given = self._words(kinds, name)
            for kind in set(given) - set(known.responsibility_kinds):
                self._note(kind, f"{name}: unknown responsibility {kind}; add it to responsibility_kinds")
            pack.lifecycle_roles[name] = tuple(each for each in given if each in known.responsibility_kinds)
        known = pack.with_builtin(builtin) if builtin is not None else pack
        if known.default_specialty not in known.specialty_profiles:
            self._note("default_specialty", "default_specialty is missing or not one of specialty_profiles")
            known.default_specialty = pack.default_specialty = next(iter(known.specialty_profiles), "")
        pack.default_lifecycle = self._one(values, "default_lifecycle", "")
        if pack.default_lifecycle and pack.default_lifecycle not in known.lifecycle_roles:
            self._note("default_lifecycle", "default_lifecycle is not one of lifecycle_roles")
            pack.default_lifecycle = ""
        for name, value in self._table(values, "alias", ALIASES_MAX):
            alias = self._alias(name, value, known)
            if alias is not None:
                pack.aliases[fold(name)] = alias
        return (pack.with_builtin(builtin) if builtin is not None else pack), self._problems

    def _alias(self, name: str, value: object, known: Pack) -> Alias | None:
        if not _ALIAS.fullmatch(name) or is_reserved(name):
            self._note(
                name,
                f"invalid alias {name}: a letter or digit, then letters, digits, dots, dashes or "
                "underscores, up to 100, and no reserved word",
            )
            return None
        entry: dict[str, Any] = value if isinstance(value, dict) else {"role": value}
        for key in entry.keys() - set(ALIAS_KEYS):
            self._note(key, f"alias {name}: unknown key {key}; known are {', '.join(ALIAS_KEYS)}")
        role = entry.get("role")
        lifecycle, _, specialty = (role if isinstance(role, str) else "").partition("/")
        specialty = specialty or known.default_specialty
        if not lifecycle or not known.knows(lifecycle, specialty):
            shown = role if isinstance(role, str) else "(no text)"
            self._note(name, f"alias {name}: unknown role {shown}; write one such as {_example(known)}")
            return None
        alias = Alias(name, lifecycle, specialty)
        alias.legacy = self._flag(entry, "legacy", default=False)
        alias.capabilities = self._lines(entry.get("capabilities", []), name, f"alias {name}: capabilities")
        alias.path = self._path
        alias.exec = self._command(name, entry.get("exec"))
        return alias

    def _command(self, name: str, value: object) -> str | None:
        if value is None or (
            isinstance(value, str)
            and value.isprintable()
            and 0 < len(value.strip()) <= len(value) <= EXEC_MAX
        ):
            return value
        self._note(name, f"alias {name}: exec must be one printable line of up to {EXEC_MAX} characters")
        return None

    def _table(self, values: dict[str, Any], key: str, most: int) -> Iterator[tuple[str, object]]:
        found = values.get(key, {})
        if not isinstance(found, dict):
            self._note(key, f"{key} must be a table")
            return
        if len(found) > most:
            self._note(key, f"{key} has {len(found)} entries; the first {most} count")
        yield from list(found.items())[:most]

    def _one(self, values: dict[str, Any], key: str, default: str) -> str:
        found = values.get(key, default)
        if found == default or (isinstance(found, str) and WORD.fullmatch(found)):
            return str(found)
        self._note(key, f"invalid {key}; valid are {_WORD_FORM}")
        return default

    def _flag(self, values: dict[str, Any], key: str, *, default: bool) -> bool:
        found = values.get(key, default)
        if isinstance(found, bool):
            return found
        self._note(key, f"{key} must be true or false")
        return default

    def _words(self, value: object, key: str) -> tuple[str, ...]:
        return self._listed(value, key, key, lambda each: bool(WORD.fullmatch(each)), _WORD_FORM)

    def _lines(self, value: object, key: str, name: str) -> tuple[str, ...]:
        return self._listed(value, key, name, is_capability, "texts of one line, up to 200 characters")

    def _listed(
        self, value: object, key: str, name: str, is_valid: Callable[[str], bool], form: str
    ) -> tuple[str, ...]:
        if not isinstance(value, list):
            self._note(key, f"{name} must be a list")
            return ()
        wrong = [each for each in value if not (isinstance(each, str) and is_valid(each))]
        if wrong:
            shown = wrong[0] if isinstance(wrong[0], str) else "(no text)"
            about = shown if self._line_of(shown) else key
            self._note(about, f"{name}: invalid value {shown or '(empty)'}; valid are {form}")
        if len(value) > VALUES_MAX:
            self._note(key, f"{name} has {len(value)} values; the first {VALUES_MAX} count")
        valid = [each for each in value[:VALUES_MAX] if isinstance(each, str) and is_valid(each)]
        return tuple(dict.fromkeys(valid))

    def _note(self, about: str, reason: str) -> None:
        if len(self._problems) < PROBLEMS_MAX:
            self._problems.append(Problem(self._path, self._line_of(about), reason[:_LINE_MAX]))

    def _line_of(self, word: str) -> int | None:
        """Return the first line outside of comments that has a word; TOML's reader does not tell where a value stood."""
        is_word = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")
        for number, line in enumerate(self._text.split("\n"), 1):
            if is_word.search(line) and not line.lstrip().startswith("#"):
                return number
        return None


def is_capability(text: str) -> bool:
    """Return whether a text may be a capability: one line of up to 200 characters, without commas."""
    return 0 < len(text) <= _LINE_MAX and text.isprintable() and "," not in text and text == text.strip()


def _example(pack: Pack) -> str:
    return f"{next(iter(pack.lifecycle_roles), 'ROLE')}/{pack.default_specialty or 'PROFILE'}"
