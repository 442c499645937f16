"""Find the role that a text names: exact, folded, by an alias, by a prefix; else suggest similar ones."""

from __future__ import annotations

from ..errors import UsageError
from ..outcome import Outcome
from ..records.ids import role_id
from ..text.name_matching import fold
from ..text.sanitize import sanitize
from .pack import WORD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .pack import Pack
    from .roles_file import Roles

EXACT, FOLDED, ALIAS, PREFIX, UNKNOWN = "exact", "folded", "alias", "prefix", "unknown"
PREFIX_MIN = 3
SUGGESTIONS_MAX = 3
SIMILARITY_MIN = 0.5
SETTING = "gitmem.roles"
WARN, REFUSE = POLICIES = ("warn", "refuse")  # what happens to a role or responsibility that is not known
KNOWN = "known"  # as REFUSE, whatever the setting says: nobody could be meant by an unknown role


class Role(Outcome):
    """A role and how it was found. The two parts are what counts, `role_id` only shows them.

    Attributes:
        specialty_profile: None if the text names a lifecycle role alone and any profile is meant.
        role_alias: The alias as it is in the pack, if one was typed.
        capabilities: Those of the alias.
        resolved_by: `exact`, `folded`, `alias` or `prefix`; `unknown` for a role that is not in the vocabulary.
    """

    def __init__(self, lifecycle_role: str, specialty_profile: str | None, resolved_by: str) -> None:
        self.lifecycle_role = lifecycle_role
        self.specialty_profile = specialty_profile
        self.role_alias: str | None = None
        self.capabilities: list[str] = []
        self.resolved_by = resolved_by

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
            return Role(lifecycle, specialty if slash else None, way)
    alias = pack.aliases.get(fold(text))
    if alias is None:
        return None
    found = Role(alias.lifecycle_role, alias.specialty_profile, ALIAS)
    found.role_alias, found.capabilities = alias.name, list(alias.capabilities)
    return found


def resolve(roles: Roles, text: str, *, policy: str = WARN, writing: bool = True) -> Role:
    """Return the role that somebody states with a text, which may be the beginning of exactly one.

    A role without a profile has the pack's default one.

    Args:
        policy: `warn` accepts a role that is not in the vocabulary; see `policy_of`.
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
        found = Role(lifecycle, specialty or None, UNKNOWN)
    found.specialty_profile = found.specialty_profile or pack.default_specialty or None
    return found


def policy_of(settings: Mapping[str, str]) -> str:
    """Return what the settings say of a role that is not in the vocabulary.

    Raises:
        UsageError: `bad-setting`.
    """
    policy = settings.get(SETTING, WARN).lower()
    if policy not in POLICIES:
        raise UsageError(
            f"Invalid {SETTING}: {policy!r}; valid are {', '.join(POLICIES)}. Nothing was written.",
            code="bad-setting",
            next=[f"git config {SETTING} {WARN}"],
        )
    return policy


def warning(roles: Roles, role: Role, typed: str) -> str | None:
    """Return what somebody who stated a role should know: that it is unknown, or taken from a prefix."""
    if role.resolved_by == PREFIX:
        return f"{sanitize(typed)} was resolved to {role.role_alias or role.role_id} by its beginning."
    if role.resolved_by != UNKNOWN:
        return None
    similar = suggestions(roles.pack, typed)
    meant = f" Similar: {', '.join(similar)}." if similar else ""
    return (
        f"Unknown role: {role.role_id}. It is recorded as it is.{meant} `gitmem role list` lists the roles."
    )


def suggestions(pack: Pack, text: str) -> list[str]:
    """Return at most three roles or aliases that are similar to a text; a legacy alias is never one."""
    from rapidfuzz.distance import Levenshtein

    query = fold(text)[:200]
    scored = ((Levenshtein.normalized_similarity(query, fold(each)), each) for each in _every(pack))
    best = sorted(
        (each for each in scored if each[0] >= SIMILARITY_MIN), key=lambda each: (-each[0], each[1])
    )
    return [each for _, each in best[:SUGGESTIONS_MAX]]


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
            suggestions=found[:SUGGESTIONS_MAX],
            next=["gitmem role list"],
        )
    role = find(pack, found[0])
    assert role is not None
    role.resolved_by = PREFIX
    return role


def _unknown(roles: Roles, text: str, code: str, policy: str, nothing: str) -> UsageError:
    what = "Unknown" if code == "unknown-role" else "Invalid"
    hint = "A role is LIFECYCLE/PROFILE or an alias; `gitmem role list` lists them."
    if code == "unknown-role" and policy == REFUSE:
        hint += f" `git config {SETTING} {WARN}` accepts others."
    elif code == "unknown-role":
        hint += " Nobody holds this one; `.gitmem/roles.toml` adds roles."
    return UsageError(
        f"{what} role: {sanitize(text)[:80] or '(empty)'}.{nothing}",
        hint=" ".join(filter(None, (hint, roles.warning))),
        code=code,
        suggestions=suggestions(roles.pack, text),
        next=["gitmem role list"],
    )
