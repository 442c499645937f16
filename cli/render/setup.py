"""What `gitmem setup` and `gitmem remove` did, and that as text."""

from __future__ import annotations

from gitmem.outcome import Outcome

from .output import paint, sanitize
from .repository import agents_md_block, gated, hooked, hooks_tried, init
from .text import block, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.clients.agents_md import AgentsMdBlock
    from gitmem.clients.client_scope import HookTestResults
    from gitmem.clients.install import InstallResult
    from gitmem.sync.init import Initialised, Uninstalled


class Setup(Outcome):
    """What `setup` did, or would do.

    Attributes:
        log: The log, its remote, and the consent to publish; None after a dry run.
        changed: The changed files of git's config.
        clients: The hooks of each client that was connected.
        instructions: The instructions in each file that the clients' models read.
        tried: Whether a message went through each hook; None if there is none.
        problems: Why files were left out.
        dry_run: Whether nothing was written.
    """

    __slots__ = ("dry_run", "log", "changed", "clients", "instructions", "tried", "problems", "next")

    def __init__(self, dry_run: bool) -> None:
        self.dry_run = dry_run
        self.log: Initialised | None = None
        self.changed: list[str] = []
        self.clients: InstallResult | None = None
        self.instructions: list[AgentsMdBlock] = []
        self.tried: HookTestResults | None = None
        self.problems: list[str] = []
        self.next: list[str] = []

    @property
    def status(self) -> int:
        """The exit status: that of the worst error of a client, or 1 if a hook did not show the message or a file was left out."""
        failed = self.clients.status if self.clients is not None else 0
        return failed or (self.tried.status if self.tried is not None else 0) or int(bool(self.problems))


class Removed(Outcome):
    """What `remove` took out, and what it left.

    Attributes:
        left: The refs and folders of the log, and the commands that delete them.
        changed: The changed files of git's config.
        clients: The hooks of each client and of git.
        instructions: The instructions in each file that had them.
        problems: Why they are left in a file.
    """

    __slots__ = ("left", "changed", "clients", "instructions", "problems", "remarks", "next")

    def __init__(self) -> None:
        self.left: Uninstalled | None = None
        self.changed: list[str] = []
        self.clients: InstallResult | None = None
        self.instructions: list[AgentsMdBlock] = []
        self.problems: list[str] = []
        self.remarks: list[str] = []
        self.next: list[str] = []

    @property
    def status(self) -> int:
        """The exit status: that of the worst error of a client, or 1 if instructions are left in a file."""
        failed = self.clients.status if self.clients is not None else 0
        return failed or int(bool(self.problems))


def setup(found: Setup) -> list[str]:
    """Return what was written where, and whether a message went through each hook."""
    if found.dry_run:
        files = [path for each in found.clients.clients for path in each.files] if found.clients else []
        files += [str(each.path) for each in found.instructions if each.state != "unchanged"]
        return block(
            "Nothing was written. gitmem setup would write the log below refs/gitmem/ and its folder in the git folder, and",
            [f"  {plain(path)}" for path in (*found.changed, *files)],
            map(sanitize, found.problems),
        )
    assert found.log is not None and found.clients is not None
    return block(
        init(found.log, found.changed),
        hooked(found.clients) or "No client was connected; `gitmem setup --client NAME` connects one",
        [line for each in found.instructions for line in agents_md_block(each)],
        found.tried is not None and "A message through each hook:",
        found.tried is not None and [f"  {line}" for line in hooks_tried(found.tried)],
        map(sanitize, found.problems),
        paint("Set up.", "good") if not found.status else paint("Set up, but not all of it works.", "bad"),
    )


def removed(found: Removed) -> list[str]:
    """Return what was taken out, what stays, and the commands that delete that."""
    assert found.clients is not None
    lines = block(
        [
            f"{each.title}: {each.state} {each.problem}".rstrip()
            for each in found.clients.clients
            if not each.files
        ],
        [f"removed from {plain(path)}" for each in found.clients.clients for path in each.files],
        gated(found.clients),
        [line for each in found.instructions for line in agents_md_block(each)],
        [f"removed from {plain(path)}" for path in found.changed],
        map(sanitize, found.clients.remarks),
    )
    left = found.left
    return block(
        lines or "Nothing of gitmem is installed here",
        left is not None
        and left.kept
        and f"stays, as it has what was recorded: {plain(', '.join(left.kept))}",
        map(sanitize, (*found.problems, *found.remarks)),
        left is not None and [f"to delete it: {sanitize(each)}" for each in left.remove],
    )
