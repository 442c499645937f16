"""The role, scope, model and capabilities that somebody states of a session, as fields of its records."""

from __future__ import annotations

from .. import strict_json
from ..errors import UsageError
from ..records.codec import as_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NotRequired, TypedDict, TypeVar

    from ..roles.roles_file import Roles
    from ..store import Store
    from .session_result import SessionResult

    Told = TypeVar("Told", bound=SessionResult)

    class RoleOptions(TypedDict):
        """What a session says of itself. One that is missing or None stays as it is; an empty one is removed.

        Attributes:
            role: `LIFECYCLE/PROFILE`, an alias, or the beginning of one.
            scope: Paths, or `KEY=VALUE`; see `roles.scope.parse`.
            model: The model that runs it.
            capabilities: What it can do; they give no role.
        """

        role: NotRequired[str | None]
        scope: NotRequired[Sequence[str] | None]
        model: NotRequired[str | None]
        capabilities: NotRequired[Sequence[str] | None]


ROLE = ("lifecycle_role", "specialty_profile", "role_alias", "role_pack")
OPTIONS = ("role", "scope", "model", "capabilities")
FIELDS = (*ROLE, "capabilities", "actual_ownership_scope", "model")


class StatedRole:
    """What options change: fields, None for those that stay and "" for those that are removed; and what to say."""

    def __init__(self) -> None:
        self.fields: dict[str, str | None] = dict.fromkeys(FIELDS)
        self.resolved_by: str | None = None
        self.remarks: list[str | None] = []

    def told(self, result: Told) -> Told:
        """Add what there is to say to an answer, and return it."""
        result.role_resolved_by = self.resolved_by
        result.remark = " ".join(filter(None, (result.remark, *self.remarks))) or None
        return result


def fields(store: Store, known: Mapping[str, str], options: RoleOptions) -> StatedRole:
    """Return what options say of a session.

    Args:
        known: The fields of the session so far.

    Raises:
        TypeError: An option is not one of `RoleOptions`.
        UsageError: `unknown-role`, `ambiguous-role`, `bad-role`, `bad-scope`, `bad-capability` or `bad-setting`.
    """
    unknown = options.keys() - set(OPTIONS)
    if unknown:
        raise TypeError(f"A session has no option {', '.join(sorted(unknown))}.")
    found = StatedRole()
    found.fields["model"] = options.get("model")
    role, scope, capabilities = options.get("role"), options.get("scope"), options.get("capabilities")
    if capabilities is not None:
        found.fields["capabilities"] = _capabilities(capabilities)
    if role is None and scope is None:
        return found
    if role == "":
        found.fields.update(dict.fromkeys(ROLE, ""))
    if scope is not None and not any(scope):
        found.fields["actual_ownership_scope"] = ""
    if role or (scope is not None and any(scope)) or (role == "" and known.get("actual_ownership_scope")):
        from ..roles import lookup, roles_file

        roles = roles_file.read(store.repo.worktree)
        found.remarks.append(roles.warning)
        policy = lookup.policy_of(store.settings())
        if role:
            _set_role(found, roles, role, policy)
        _set_scope(found, roles, known, [each for each in scope or () if each], policy)
    return found


def _set_role(found: StatedRole, roles: Roles, text: str, policy: str) -> None:
    from ..roles import lookup

    role = lookup.resolve(roles, text, policy=policy)
    found.resolved_by = role.resolved_by
    found.remarks.append(lookup.warning(roles, role, text))
    found.fields["lifecycle_role"] = role.lifecycle_role
    found.fields["specialty_profile"] = role.specialty_profile or ""
    found.fields["role_alias"] = role.role_alias or ""
    found.fields["role_pack"] = roles.pack.name
    if role.capabilities:
        found.fields["capabilities"] = found.fields["capabilities"] or as_json(role.capabilities)


def _set_scope(
    found: StatedRole, roles: Roles, known: Mapping[str, str], texts: Sequence[str], policy: str
) -> None:
    """Set the scope that the texts name; without any, adapt the known one to a new role.

    Raises:
        UsageError: `unknown-responsibility`, if the setting refuses unknown ones.
    """
    from ..roles import lookup, scope

    before = known.get("lifecycle_role")
    role = before if found.fields["lifecycle_role"] is None else found.fields["lifecycle_role"]
    if texts:
        given = scope.parse(texts)
    else:
        stored = known.get("actual_ownership_scope")
        kept = scope.read(strict_json.read(stored)) if stored else None
        usual = list(roles.pack.lifecycle_roles.get(before or "", ()))
        if kept is None or found.fields["actual_ownership_scope"] == "" or kept.responsibility_kinds != usual:
            return
        given, given.responsibility_kinds = kept, []
    scope.with_default_kinds(given, role, roles.pack)
    unknown = scope.unknown_kinds(given, roles.pack) if texts else []
    if unknown and policy == lookup.REFUSE:
        raise UsageError(
            f"Unknown responsibility: {unknown[0]}. Nothing was written.",
            hint=f"Known are {', '.join(roles.pack.responsibility_kinds)}.",
            code="unknown-responsibility",
            next=["gitmem role list"],
        )
    if unknown:
        found.remarks.append(f"Unknown responsibility: {', '.join(unknown)}. It is recorded as it is.")
    found.fields["actual_ownership_scope"] = as_json(given.as_json())


def _capabilities(given: Sequence[str]) -> str:
    """Return capabilities as they are folded; "" for none.

    Raises:
        UsageError: `bad-capability`.
    """
    from ..roles import pack

    words = [word.strip() for text in given for word in text.split(",")]
    if words in ([], [""]):
        return ""
    wrong = next((word for word in words if not pack.is_capability(word)), None)
    if wrong is not None or len(words) > pack.VALUES_MAX:
        raise UsageError(
            f"Invalid capabilities: each is one line of up to 200 characters, and there are at most {pack.VALUES_MAX}. "
            "Nothing was written.",
            code="bad-capability",
        )
    return as_json(list(dict.fromkeys(words)))
