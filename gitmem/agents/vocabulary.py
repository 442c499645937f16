"""The vocabulary of roles: packs in TOML files, the role that a text names, and the agents that clients have files of.

The built-in pack is `software-delivery.toml`; `.gitmem/roles.toml` of a work tree adds to it. Both are read only where a
role is named. An entry that breaks a rule is left out and reported with its line, and all others count. The texts are
untrusted.

Files of clients are read and never written. The role is not in them, because a client may refuse a key that it does not know: it
comes from the name, by the aliases of the pack.
"""

from __future__ import annotations

import os
import re
import time

from ..errors import UsageError
from ..git import work_tree_files
from ..outcome import Outcome, Struct
from ..records.ids import role_id
from ..settings import REFUSE, ROLES, WARN
from ..text.name_matching import SIMILAR_MAX, fold, is_reserved, similar
from ..text.sanitize import sanitize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from typing import Any


DOTS_MAX = 1_000  # in a line: the time that Python's reader of TOML takes for a key is quadratic in its parts
FILE_BYTES_MAX = 64 * 1024
HEAD_LINES_MAX = 1_000
_KEY = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]{0,99})[ \t]*:(?:[ \t]+(.*)|)$")
_BLOCK = re.compile(r"[|>][-+0-9]{0,2}(?:[ \t]+#.*)?$|#")
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


def read_frontmatter(text: str) -> dict[str, str]:
    """Return the texts at the top level of a Markdown file's YAML head, each in one line; {} without a head.

    Clients accept much that is not YAML, such as a colon in a text without quotes; so does this. What is indented belongs to the text
    before it, whatever it is.

    Raises:
        FormatError: The head has no end.
    """
    lines = [line.rstrip() for line in text.split("\n", HEAD_LINES_MAX + 1)]
    if lines[0] != "---":
        return {}
    if "---" not in lines[1:]:
        raise FormatError("the head that begins with --- has no end", 1)
    found: dict[str, list[str]] = {}
    parts: list[str] = []
    for line in lines[1 : lines.index("---", 1)]:
        if match := _KEY.match(line):
            parts = found[match[1]] = [match[2] or ""]
        elif not line or line[0] in " \t":
            parts.append(line.strip())
    return {key: _text(first.strip(), rest) for key, (first, *rest) in found.items()}


def _text(first: str, rest: list[str]) -> str:
    """Return a text of the rest of its line and the lines below it, without quotes and escapes, or without a comment behind it."""
    is_block = _BLOCK.match(first)
    text = " ".join(filter(None, rest if is_block else (first, *rest)))
    if len(text) > 1 and text[0] == text[-1] == '"':
        return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), text[1:-1])
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    return text if is_block else text.partition(" #")[0].rstrip()


VALUES_MAX = 100  # of each list
PROBLEMS_MAX = 20  # that are reported
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
    """

    name: str = ""
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


class _PackReader:
    """Makes a pack of the text of a file, and notes what is wrong with it."""

    def __init__(self, text: str, path: str) -> None:
        self._text = text
        self._path = path
        self.problems: list[Problem] = []

    def read(self, base: Pack) -> Pack | None:
        """Return the pack: what the file adds to another one, unless it says `builtin = false`; None if it is not TOML."""
        try:
            values = read_toml(self._text)
        except FormatError as error:
            self.problems = [Problem(self._path, error.line, error.reason[:_LINE_MAX])]
            return None
        for key in values:
            if key not in KEYS:
                self._note(key, f"unknown key {key}; known are {', '.join(KEYS)}")
        base = base if self._flag(values, "builtin", default=True) else Pack()
        profiles = (
            *base.specialty_profiles,
            *self._words(values.get("specialty_profiles", []), "specialty_profiles"),
        )
        kinds = (
            *base.responsibility_kinds,
            *self._words(values.get("responsibility_kinds", []), "responsibility_kinds"),
        )
        pack = Pack(self._word(values, "pack") or base.name)
        pack.specialty_profiles = tuple(dict.fromkeys(profiles))
        pack.responsibility_kinds = tuple(dict.fromkeys(kinds))
        pack.lifecycle_roles = {**base.lifecycle_roles, **self._lifecycle_roles(values, kinds)}
        pack.default_specialty = (
            self._word(values, "default_specialty", profiles)
            or base.default_specialty
            or next(iter(profiles), "")
        )
        pack.default_lifecycle = (
            self._word(values, "default_lifecycle", pack.lifecycle_roles) or base.default_lifecycle
        )
        pack.aliases = dict(base.aliases)
        for name, value in self._table(values, "alias"):
            if alias := self._alias(name, value, pack):
                pack.aliases[fold(name)] = alias
        return pack

    def _lifecycle_roles(self, values: dict[str, Any], kinds: Collection[str]) -> dict[str, tuple[str, ...]]:
        found = {}
        for name, given in self._table(values, "lifecycle_roles"):
            if not WORD.fullmatch(name):
                self._note(name, f"invalid lifecycle role {name}; valid are {_WORD_FORM}")
                continue
            words = self._words(given, name)
            for kind in set(words).difference(kinds):
                self._note(kind, f"{name}: unknown responsibility {kind}; add it to responsibility_kinds")
            found[name] = tuple(each for each in words if each in kinds)
        return found

    def _alias(self, name: str, value: object, pack: Pack) -> Alias | None:
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
        given = entry.get("role")
        role = given if isinstance(given, str) else ""
        lifecycle, _, specialty = role.partition("/")
        specialty = specialty or pack.default_specialty
        if not lifecycle or not pack.knows(lifecycle, specialty):
            such = f"{next(iter(pack.lifecycle_roles), 'ROLE')}/{pack.default_specialty or 'PROFILE'}"
            self._note(name, f"alias {name}: unknown role {role or '(no text)'}; write one such as {such}")
            return None
        alias = Alias(name, lifecycle, specialty, self._flag(entry, "legacy", default=False))
        form = "texts of one line, up to 200 characters"
        alias.capabilities = self._listed(
            entry.get("capabilities", []), name, f"alias {name}: capabilities", is_capability, form
        )
        alias.path, alias.exec = self._path, entry.get("exec")
        is_line = isinstance(alias.exec, str) and alias.exec.isprintable() and alias.exec.strip()
        if alias.exec is not None and not (is_line and len(alias.exec) <= EXEC_MAX):
            self._note(name, f"alias {name}: exec must be one printable line of up to {EXEC_MAX} characters")
            alias.exec = None
        return alias

    def _table(self, values: dict[str, Any], key: str) -> Iterator[tuple[str, object]]:
        found = values.get(key, {})
        if isinstance(found, dict):
            yield from found.items()
        else:
            self._note(key, f"{key} must be a table")

    def _word(self, values: dict[str, Any], key: str, known: Collection[str] | None = None) -> str:
        """Return the word of a key, one of those that are known if that counts; "" without it."""
        found = values.get(key, "")
        if found == "" or (
            isinstance(found, str) and WORD.fullmatch(found) and (known is None or found in known)
        ):
            return str(found)
        self._note(key, f"invalid {key}; valid are {_WORD_FORM if known is None else ', '.join(known)}")
        return ""

    def _flag(self, values: dict[str, Any], key: str, *, default: bool) -> bool:
        found = values.get(key, default)
        if isinstance(found, bool):
            return found
        self._note(key, f"{key} must be true or false")
        return default

    def _words(self, value: object, key: str) -> tuple[str, ...]:
        return self._listed(value, key, key, lambda each: bool(WORD.fullmatch(each)), _WORD_FORM)

    def _listed(
        self, value: object, key: str, name: str, is_valid: Callable[[str], bool], form: str
    ) -> tuple[str, ...]:
        if not isinstance(value, list):
            self._note(key, f"{name} must be a list")
            return ()
        wrong = next((each for each in value if not (isinstance(each, str) and is_valid(each))), None)
        if wrong is not None:
            shown = wrong if isinstance(wrong, str) else "(no text)"
            about = shown if self._line_of(shown) else key
            self._note(about, f"{name}: invalid value {shown or '(empty)'}; valid are {form}")
        if len(value) > VALUES_MAX:
            self._note(key, f"{name} has {len(value)} values; the first {VALUES_MAX} count")
        valid = [each for each in value[:VALUES_MAX] if isinstance(each, str) and is_valid(each)]
        return tuple(dict.fromkeys(valid))

    def _note(self, about: str, reason: str) -> None:
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(Problem(self._path, self._line_of(about), reason[:_LINE_MAX]))

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


FILE = ".gitmem/roles.toml"
BUILTIN = "software-delivery.toml"


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
        found = _PackReader(file.read(), "").read(Pack())
    assert found is not None
    return found


def read(top: str | None) -> Roles:
    """Return the roles that count in a work tree. Nothing that its file contains makes this fail.

    Args:
        top: The top folder of the work tree; None for a bare repository, which has the built-in pack alone.
    """
    found = Roles(builtin())
    try:
        text = _text_of(top, FILE) if top is not None else None
    except (OSError, ValueError) as error:
        found.path, found.is_whole, found.problems = FILE, False, [Problem(FILE, None, _reason(error))]
        return found
    if text is not None:
        reader = _PackReader(text, FILE)
        both = reader.read(found.pack)
        found = Roles(both or found.pack, FILE, reader.problems, both is not None)
    return found


def _text_of(top: str, path: str) -> str | None:
    """Return the text of a file of a work tree; None if there is none.

    Raises:
        OSError: It cannot be read.
        ValueError: The file is not text, or lies outside of the work tree.
    """
    real = work_tree_files.resolve(top, path)
    return work_tree_files.read_text(real, FILE_BYTES_MAX) if real is not None else None


def _reason(error: Exception) -> str:
    return f"it cannot be read ({error.strerror})" if isinstance(error, OSError) else str(error)


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


# Client, folder, suffix of the names, and how many levels of folders are entered.
PLACES = (
    ("claude-code", ".claude/agents", ".md", 4),
    ("gemini", ".gemini/agents", ".md", 0),
    ("copilot", ".github/agents", ".agent.md", 0),
    ("opencode", ".opencode/agent", ".md", 0),
    ("opencode", ".opencode/agents", ".md", 0),
    ("codex", ".codex/agents", ".toml", 0),
)
FILES_MAX = 200
ENTRIES_MAX = 5_000
SECONDS_MAX = 2.0
_TEXT_MAX = 1_000  # characters of a description
_NAME_MAX = 100


class ClientAgent(Outcome):
    """An agent by the file of a client. `model` and `description` are None if the file does not say them."""

    name: str
    client: str
    path: str
    description: str | None = None
    model: str | None = None


def read_client_agents(
    top: str | None, *, clock: Callable[[], float] = time.monotonic
) -> tuple[list[ClientAgent], list[Problem]]:
    """Return the agents of all clients in a work tree, and the files that could not be read.

    Args:
        top: The top folder of the work tree; None for a bare repository, which has none.
        clock: Seconds; the search for files ends after `SECONDS_MAX`.
    """
    found: list[ClientAgent] = []
    problems: list[Problem] = []
    if top is None:
        return found, problems
    until = clock() + SECONDS_MAX
    search = work_tree_files.FileSearch(top, ENTRIES_MAX, lambda: clock() > until)
    files: list[tuple[str, str, str]] = []
    for client, folder, suffix, depth in PLACES:
        try:
            files += [(client, path, suffix) for path in search.find(folder, suffix, depth)]
        except (OSError, ValueError) as error:
            problems.append(_problem(folder, error))
    for client, path, suffix in files[:FILES_MAX]:
        try:
            found.append(_agent(top, client, path, suffix))
        except (OSError, ValueError) as error:
            problems.append(_problem(path, error))
    if len(files) > FILES_MAX:
        search.cut = f"there are more than {FILES_MAX} agent files"
    if search.cut:
        problems.append(Problem("agent files", None, f"{search.cut}; the rest is not read"))
    return found, problems


def _problem(path: str, error: Exception) -> Problem:
    return Problem(path, error.line if isinstance(error, FormatError) else None, _reason(error))


def _agent(top: str, client: str, path: str, suffix: str) -> ClientAgent:
    text = _text_of(top, path) or ""
    values = read_toml(text) if suffix == ".toml" else read_frontmatter(text)
    name = _line(values.get("name"), _NAME_MAX) or path.rpartition("/")[2].removesuffix(suffix)[:_NAME_MAX]
    description = _line(values.get("description"), _TEXT_MAX)
    return ClientAgent(name, client, path, description, _line(values.get("model"), _NAME_MAX))


def _line(value: object, most: int) -> str | None:
    """Return a text as one line of at most so many characters; None for anything else, and for an empty one."""
    words = " ".join(value.split()) if isinstance(value, str) else ""
    return words[:most] or None
