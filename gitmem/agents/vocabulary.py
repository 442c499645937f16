"""The vocabulary of roles: packs in TOML files, and the role that a text names.

The built-in pack is `software-delivery.toml`; `.gitmem/roles.toml` of a work tree adds to it. Both are read only where a
role is named. An entry that breaks a rule is left out and reported with its line, and all others count. The texts are
untrusted.
"""

from __future__ import annotations

import os
import re

from ..errors import UsageError
from ..git import work_tree_files
from ..outcome import Outcome, Struct
from ..records.ids import role_id
from ..settings import REFUSE, ROLES, WARN
from ..text.name_matching import SIMILAR_MAX, fold, is_reserved, similar
from ..text.sanitize import sanitize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any


DOTS_MAX = 1_000  # in a line: the time that Python's reader of TOML takes for a key is quadratic in its parts
HEAD_LINES_MAX = 1_000
KEYS_MAX = 200
_KEY = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]{0,99})[ \t]*:(?:[ \t]+(.*)|)$")
_BLOCK = re.compile(r"[|>][-+0-9]{0,2}(?:[ \t]+#.*)?$")
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/"}


class FormatError(ValueError):
    """A text has another form. `line` is None if the whole text is meant."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


def read_toml(text: str) -> dict[str, Any]:
    """Return the values of a TOML text.

    Raises:
        FormatError: It is not TOML, or is made to take long.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > DOTS_MAX:
            raise FormatError(f"more than {DOTS_MAX} dots in a line", number)
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        found = re.search(r" \(at line (\d+), column \d+\)$", str(error))
        if found is None:
            is_deep = isinstance(error, RecursionError)
            raise FormatError("too many levels" if is_deep else str(error) or "not TOML") from None
        raise FormatError(str(error)[: found.start()], int(found[1])) from None


def read_frontmatter(text: str) -> dict[str, str | list[str]]:
    """Return the texts and lists of texts at the top level of a Markdown file's YAML head; {} without a head.

    Clients accept much that is not YAML, such as a colon in a text without quotes; so does this. Anything else than
    texts, block texts and lists, such as objects, is left out.

    Raises:
        FormatError: The head has no end.
    """
    lines = text.split("\n", HEAD_LINES_MAX + 1)
    if lines[0].rstrip() != "---":
        return {}
    end = next(
        (at for at, line in enumerate(lines[1 : HEAD_LINES_MAX + 1], 1) if line.rstrip() == "---"), None
    )
    if end is None:
        raise FormatError("the head that begins with --- has no end", 1)
    found: dict[str, str | list[str]] = {}
    at = 1
    while at < end and len(found) < KEYS_MAX:
        match = _KEY.match(lines[at].rstrip())
        at += 1
        if match is None:
            continue
        inner = []
        # A list may stand at the indentation of its key.
        while at < end and (not lines[at].strip() or lines[at][0] in " \t" or lines[at].startswith("- ")):
            inner.append(lines[at].rstrip())
            at += 1
        value = _value((match[2] or "").strip(), inner)
        if value is not None:
            found[match[1]] = value
    return found


def _value(given: str, inner: Sequence[str]) -> str | list[str] | None:
    """Return the value of a key by the rest of its line and the lines that belong to it; None for an object."""
    words = [line.strip() for line in inner]
    if _BLOCK.match(given):
        return _block(inner, folded=given[0] == ">")
    if given and not given.startswith("#"):
        if given.startswith("[") and given.endswith("]"):
            return [_scalar(each.strip()) for each in given[1:-1].split(",") if each.strip()]
        return _scalar(" ".join([given, *filter(None, words)]))
    items = [word for word in words if word and not word.startswith("#")]
    if items and all(word.startswith("- ") for word in items):
        return [_scalar(word[2:].strip()) for word in items]
    return None if any(_KEY.match(word) for word in items) else _scalar(" ".join(items))


def _block(inner: Sequence[str], *, folded: bool) -> str:
    depth = min((len(line) - len(line.lstrip()) for line in inner if line), default=0)
    lines = [line[depth:] for line in inner]
    if not folded:
        return "\n".join(lines).strip("\n")
    return "\n".join(" ".join(part.split("\n")) for part in "\n".join(lines).strip("\n").split("\n\n"))


def _scalar(text: str) -> str:
    """Return a text without its quotes and escapes, or without a comment behind it."""
    if len(text) > 1 and text[0] == text[-1] == '"':
        return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), text[1:-1])
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    return text.partition(" #")[0].rstrip()


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

    path: str
    line: int | None
    reason: str

    @property
    def text(self) -> str:
        """The problem in one line."""
        return sanitize(f"{self.path}{f':{self.line}' if self.line else ''}: {self.reason}", keep="")


class Alias(Struct):
    """A name of an agent, and the role that it stands for.

    Attributes:
        legacy: Whether it is only understood, and never offered.
        path: The file that has it; "" for the built-in pack.
        exec: The command that answers calls to the agent of this name. It is content of the repository: see `client_run`.
    """

    name: str
    lifecycle_role: str
    specialty_profile: str
    legacy: bool = False
    capabilities: tuple[str, ...] = ()
    path: str = ""
    exec: str | None = None


class Pack(Struct):
    """The roles that are known: of the built-in pack, or of that and a file.

    Attributes:
        name: The name of the pack, which records have.
        default_lifecycle: The role that is asked for where nobody states one; "" for none.
        lifecycle_roles: Each with the responsibilities of a scope that states none.
        aliases: By their folded names.
        builtin: Whether the built-in pack is part of it.
    """

    name: str = ""
    builtin: bool = True
    default_specialty: str = ""
    default_lifecycle: str = ""
    lifecycle_roles: dict[str, tuple[str, ...]] = {}
    specialty_profiles: tuple[str, ...] = ()
    responsibility_kinds: tuple[str, ...] = ()
    aliases: dict[str, Alias] = {}

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


def parse_pack(text: str, path: str, builtin: Pack | None = None) -> tuple[Pack | None, list[Problem]]:
    """Read the text of a pack.

    Args:
        path: The name of the file, for problems.
        builtin: The built-in pack, which it adds to unless it says `builtin = false`.

    Returns:
        The pack, None if the text is not TOML; and what does not count.
    """
    try:
        values = read_toml(text)
    except FormatError as error:
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


FILE = ".gitmem/roles.toml"
BUILTIN = "software-delivery.toml"
FILE_BYTES_MAX = 64 * 1024


class Roles(Struct):
    """The pack that counts in a work tree, and what its file has wrong.

    Attributes:
        path: The file of the work tree; None if it has none.
        is_whole: Whether the file could be read, if there is one.
    """

    pack: Pack
    path: str | None = None
    problems: list[Problem] = []
    is_whole: bool = True

    @property
    def warning(self) -> str | None:
        """What somebody who names a role should know of the file, or None."""
        if not self.problems:
            return None
        more = f" {len(self.problems) - 1} more: `gitmem role --check`." if self.problems[1:] else ""
        left = "This entry does not count." if self.is_whole else "Only the built-in roles count."
        return f"{self.problems[0].text}. {left}{more}"


def builtin() -> Pack:
    """Return the pack that comes with gitmem."""
    with open(os.path.join(os.path.dirname(__file__), BUILTIN), encoding="utf-8") as file:
        found, problems = parse_pack(file.read(), BUILTIN)
    assert found is not None and not problems
    return found


def read(top: str | None) -> Roles:
    """Return the roles that count in a work tree. Nothing that its file contains makes this fail.

    Args:
        top: The top folder of the work tree; None for a bare repository, which has the built-in pack alone.
    """
    found = Roles(builtin())
    if top is None:
        return found
    try:
        real = work_tree_files.resolve(top, FILE)
        if real is None:
            return found
        found.path = FILE
        text = work_tree_files.read_text(real, FILE_BYTES_MAX)
    except OSError as error:
        reason = f"it cannot be read ({error.strerror})"
    except ValueError as error:
        reason = str(error)
    else:
        both, found.problems = parse_pack(text, FILE, found.pack)
        found.is_whole = both is not None
        found.pack = both or found.pack
        return found
    found.path, found.is_whole, found.problems = FILE, False, [Problem(FILE, None, reason)]
    return found


EXACT, FOLDED, ALIAS, PREFIX, UNKNOWN = "exact", "folded", "alias", "prefix", "unknown"
PREFIX_MIN = 3
KNOWN = "known"  # as REFUSE, whatever the setting says: nobody could be meant by an unknown role


class Role(Outcome, kw_only=True):
    """A role and how it was found. The two parts are what counts, `role_id` only shows them.

    Attributes:
        specialty_profile: None if the text names a lifecycle role alone and any profile is meant.
        role_alias: The alias as it is in the pack, if one was typed.
        capabilities: Those of the alias.
        resolved_by: `exact`, `folded`, `alias` or `prefix`; `unknown` for a role that is not in the vocabulary.
    """

    lifecycle_role: str
    specialty_profile: str | None
    role_alias: str | None = None
    capabilities: list[str] = []
    resolved_by: str

    @property
    def role_id(self) -> str:
        """The role as it is shown."""
        return role_id(self.lifecycle_role, self.specialty_profile) or ""


def find(pack: Pack, text: str) -> Role | None:
    """Return the role of the vocabulary that a text names in full; None if there is none.

    Args:
        text: `LIFECYCLE/PROFILE`, `LIFECYCLE` for any profile, or an alias.
    """
    for spelled, way in ((text, EXACT), (fold(text), FOLDED)):
        lifecycle, slash, specialty = spelled.partition("/")
        if lifecycle and pack.knows(lifecycle, specialty if slash else None):
            return Role(
                lifecycle_role=lifecycle, specialty_profile=specialty if slash else None, resolved_by=way
            )
    alias = pack.aliases.get(fold(text))
    if alias is None:
        return None
    found = Role(
        lifecycle_role=alias.lifecycle_role, specialty_profile=alias.specialty_profile, resolved_by=ALIAS
    )
    found.role_alias, found.capabilities = alias.name, list(alias.capabilities)
    return found


def resolve(roles: Roles, text: str, *, policy: str = WARN, writing: bool = True) -> Role:
    """Return the role that somebody states with a text, which may be the beginning of exactly one.

    A role without a profile has the pack's default one.

    Args:
        policy: `warn` accepts a role that is not in the vocabulary; see `settings.ROLES`.
        writing: Whether errors should say that nothing was written.

    Raises:
        UsageError: `ambiguous-role`, `bad-role`, or `unknown-role`.
    """
    pack = roles.pack
    nothing = " Nothing was written." if writing else ""
    found = find(pack, text) or _by_prefix(pack, text, nothing)
    if found is None:
        lifecycle, slash, specialty = fold(text).partition("/")
        is_form = WORD.fullmatch(lifecycle) and (WORD.fullmatch(specialty) or not slash)
        if policy != WARN or not is_form:
            raise _unknown(roles, text, "unknown-role" if is_form else "bad-role", policy, nothing)
        found = Role(lifecycle_role=lifecycle, specialty_profile=specialty or None, resolved_by=UNKNOWN)
    found.specialty_profile = found.specialty_profile or pack.default_specialty or None
    return found


def warning(roles: Roles, role: Role, typed: str) -> str | None:
    """Return what somebody who stated a role should know: that it is unknown, or taken from a prefix."""
    if role.resolved_by == PREFIX:
        return f"{sanitize(typed)} was resolved to {role.role_alias or role.role_id} by its beginning."
    if role.resolved_by != UNKNOWN:
        return None
    known = similar_roles(roles.pack, typed)
    meant = f" Similar: {', '.join(known)}." if known else ""
    return f"Unknown role: {role.role_id}. It is recorded as it is.{meant} `gitmem role` lists the roles."


def similar_roles(pack: Pack, text: str) -> list[str]:
    """Return at most three roles or aliases that are similar to a text; a legacy alias is never one."""
    return similar(fold(text)[:200], {each: fold(each) for each in _every(pack)})


def _every(pack: Pack) -> Iterable[str]:
    yield from (each.name for each in pack.offered())
    for lifecycle in pack.lifecycle_roles:
        yield lifecycle
        yield from (f"{lifecycle}/{specialty}" for specialty in pack.specialty_profiles)


def _by_prefix(pack: Pack, text: str, nothing: str) -> Role | None:
    """Return the role or alias that alone begins with a text; each part of `a/b` is a prefix of its own.

    Raises:
        UsageError: `ambiguous-role`.
    """
    lifecycle, slash, specialty = fold(text).partition("/")
    if len(lifecycle) < PREFIX_MIN or (slash and not specialty):
        return None
    begun = [each for each in pack.lifecycle_roles if each.startswith(lifecycle)]
    if slash:
        ends = [each for each in pack.specialty_profiles if each.startswith(specialty)]
        found = [f"{one}/{other}" for one in begun for other in ends]
    else:
        found = begun + [each.name for each in pack.offered() if fold(each.name).startswith(lifecycle)]
    if not found:
        return None
    if len(found) > 1:
        raise UsageError(
            f"Ambiguous role: {sanitize(text)[:80]} is the beginning of {len(found)}.{nothing}",
            hint="Type more of it.",
            code="ambiguous-role",
            suggestions=found[:SIMILAR_MAX],
            next=["gitmem role"],
        )
    role = find(pack, found[0])
    assert role is not None
    role.resolved_by = PREFIX
    return role


def _unknown(roles: Roles, text: str, code: str, policy: str, nothing: str) -> UsageError:
    what = "Unknown" if code == "unknown-role" else "Invalid"
    hint = "A role is LIFECYCLE/PROFILE or an alias; `gitmem role` lists them."
    if code == "unknown-role" and policy == REFUSE:
        hint += f" `git config {ROLES.key} {WARN}` accepts others."
    elif code == "unknown-role":
        hint += " Nobody holds this one; `.gitmem/roles.toml` adds roles."
    return UsageError(
        f"{what} role: {sanitize(text)[:80] or '(empty)'}.{nothing}",
        hint=" ".join(filter(None, (hint, roles.warning))),
        code=code,
        suggestions=similar_roles(roles.pack, text),
        next=["gitmem role"],
    )
