"""What `gitmem setup` and `gitmem remove` did, and that as text."""

from __future__ import annotations

from gitmem.outcome import Outcome

from .output import paint, sanitize
from .repository import agents_md_block, gated, hooked, hooks_tried, init
from .text import block, plain, wrapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.clients.agents_md import AgentsMdBlock
    from gitmem.clients.client_scope import HookTestResults
    from gitmem.clients.install import InstallResult
    from gitmem.sync.init import Initialised, Uninstalled


class Setup(Outcome):
    """What `setup` did, or would do.

    Attributes:
        log: The log, its remote, and the consent to publish; None after a dry run, and without a repository.
        changed: The changed files of git's config.
        clients: The hooks of each client that was connected.
        instructions: The instructions in each file that the clients' models read.
        tried: Whether a message went through each hook; None if there is none.
        problems: Why hooks of git were left out.
        dry_run: Whether nothing was written.
    """

    dry_run: bool
    clients: InstallResult
    log: Initialised | None = None
    changed: list[str] = []
    instructions: list[AgentsMdBlock] = []
    tried: HookTestResults | None = None
    problems: list[str] = []
    next: list[str] = []

    @property
    def status(self) -> int:
        """The exit status: that of the worst error of a client, or 1 if a hook did not show the message or a file was left out."""
        return self.clients.status or (self.tried.status if self.tried is not None else 0) or _failed(self)


class Removed(Outcome):
    """What `remove` took out, and what it left.

    Attributes:
        left: The refs and folders of the log, and the commands that delete them.
        changed: The changed files of git's config.
        clients: The hooks of each client and of git.
        instructions: The instructions in each file that had them.
        problems: Why hooks of git stay.
        dry_run: Whether nothing was removed.
    """

    dry_run: bool
    clients: InstallResult
    left: Uninstalled | None = None
    changed: list[str] = []
    instructions: list[AgentsMdBlock] = []
    problems: list[str] = []
    remarks: list[str] = []
    next: list[str] = []

    @property
    def status(self) -> int:
        """The exit status: that of the worst error of a client, or 1 if instructions are left in a file."""
        return self.clients.status or _failed(self)


def _failed(found: Setup | Removed) -> int:
    return int(bool(found.problems) or any(each.problem for each in found.instructions))


def setup(found: Setup) -> list[str]:
    """Return what was written where, and whether a message went through each hook."""
    if found.dry_run:
        files = [path for each in found.clients.clients for path in each.files]
        files += [each.path for each in found.instructions if each.state not in ("unchanged", "failed")]
        return block(
            wrapped(
                "Nothing was written. gitmem setup would write the log below refs/gitmem/ and its folder in the git folder, and"
            ),
            [f"  {plain(path)}" for path in (*found.changed, *files)],
            [sanitize(each.problem) for each in found.instructions if each.problem],
        )
    return block(
        found.log is not None and init(found.log, found.changed),
        hooked(found.clients) or "No client was connected; `gitmem setup --client NAME` connects one",
        [line for each in found.instructions for line in agents_md_block(each)],
        found.tried is not None and "A message through each hook:",
        found.tried is not None and [f"  {line}" for line in hooks_tried(found.tried)],
        map(sanitize, found.problems),
        paint("Set up.", "good") if not found.status else paint("Set up, but not all of it works.", "bad"),
    )


def removed(found: Removed) -> list[str]:
    """Return what was taken out, what stays, and the commands that delete that."""
    left = found.left
    hooks, gits = found.clients.clients, found.clients.git
    lines = block(
        [f"{each.title}: {each.state} {each.problem}".rstrip() for each in hooks if not each.files],
        [f"removed from {plain(path)}" for each in hooks for path in each.files],
        gated(found.clients),
        [line for each in found.instructions for line in agents_md_block(each)],
        [f"removed from {plain(path)}" for path in found.changed],
        map(sanitize, found.clients.remarks),
    )
    if found.dry_run:
        files = [path for each in hooks for path in each.files] + [
            path for each in gits for path in each.files
        ]
        files += [each.path for each in found.instructions if not each.problem]
        problems = [each.problem for each in hooks] + [each.problem for each in found.instructions]
        lines = block(
            "Nothing was removed. gitmem remove would take out what is gitmem's in",
            [f"  {plain(path)}" for path in dict.fromkeys((*files, *found.changed))],
            [sanitize(each) for each in problems if each],
        )
    return block(
        lines or "Nothing of gitmem is installed here",
        left is not None
        and left.kept
        and f"stays, as it has what was recorded: {plain(', '.join(left.kept))}",
        map(sanitize, (*found.problems, *found.remarks)),
        left is not None and [f"to delete it: {sanitize(each)}" for each in left.remove],
    )
