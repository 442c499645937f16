"""What the card of an agent says about it: by the file that a client has of it, and by its role.

Both are content of a repository, and whoever reaches the gateway reads the card without a token, perhaps as text for a model.
"""

from __future__ import annotations

from ..agents import descriptions, presence, role_list, vocabulary
from ..commit_message import cut
from ..text import secrets
from ..text.name_matching import fold
from ..text.sanitize import sanitize_for_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store import Store

DESCRIPTION_MAX, TAG_MAX, TAGS_MAX = 500, 64, 20  # characters, characters, and how many


def describe(store: Store, name: str, address: str) -> tuple[str | None, list[str]]:
    """Return the description and the tags of an agent, from the work tree and the log as they are now.

    The description is that of a client's file with this name. The role is that which the name is an alias of, else that of the agent's last
    session. What looks like a secret is left out.

    Args:
        name: As the gateway serves it.
        address: Its identity.

    Returns:
        The description, None if nothing is known of the agent, and its role, responsibilities and capabilities.
    """
    pack = vocabulary.read(store.repo.worktree).pack
    named = vocabulary.find(pack, name)
    role, skills = (
        (named.role_id, list(named.capabilities)) if named is not None else _of_session(store, address)
    )
    kinds = pack.lifecycle_roles.get(role.partition("/")[0], ()) if role else ()
    said = [_of_file(store, name)]
    if role:
        said.append(f"Role: {role} ({', '.join(kinds)})." if kinds else f"Role: {role}.")
    tags = filter(None, (_safe(each, TAG_MAX) for each in (role, *kinds, *skills)))
    return _safe(" ".join(filter(None, said)), DESCRIPTION_MAX) or None, list(dict.fromkeys(tags))[:TAGS_MAX]


def _of_session(store: Store, address: str) -> tuple[str, list[str]]:
    """Return role and capabilities of the session of an agent that was last at work."""
    for each in presence.of_identity(store, address)[:1]:
        return each.role or "", descriptions.role_row(each.record, address)["capabilities"]
    return "", []


def _of_file(store: Store, name: str) -> str:
    """Return the description of the first file that a client has of an agent; it ends with a full stop."""
    found, _ = role_list.read_client_agents(store.repo.worktree)
    for each in found:
        if fold(each.name) == fold(name) and each.description:
            text = _safe(each.description, DESCRIPTION_MAX)
            return text if not text or text[-1] in ".!?…" else f"{text}."
    return ""


def _safe(text: str, longest: int) -> str:
    """Return a text without what acts on a reader, of limited length; "" if it looks like a secret."""
    return "" if secrets.find_secret(text) else cut(sanitize_for_model(" ".join(text.split())), longest)
