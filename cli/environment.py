"""The environment of a command: folder, variables, terminal, machine, and the folders outside the repository. No other module reads them.

An agent in a sandbox leaves lines in folders of write-ahead logs outside the repository.

At its end a command of a session records the commits of its worktree, renews claims and tells of contested ones, and gives notice of unread
signals: one line on standard error, or the field `notice` of an answer in JSON. Without anything to do it looks at a few files.
"""

from __future__ import annotations

import os
import sys
import time

from gitmem.errors import GitmemError, UsageError
from gitmem.outcome import Outcome
from gitmem.repo import Repo, find

from .render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType
    from typing import Self, TypeVar, Unpack

    from gitmem.agents.caller import Caller, CallerClaims
    from gitmem.history.commits import Clues
    from gitmem.signals.watch import StopWatching
    from gitmem.store import Store

    At = TypeVar("At", bound="Environment")
    from .render.output import Form

    Answer = TypeVar("Answer")
    Answered = TypeVar("Answered", bound=Outcome)


# The folders for temporary files without $TMPDIR: folders in them are checked for owner, mode and links.
SHARED = ("/tmp", "/var/tmp")  # noqa: S108


def external_wals(repo: Repo) -> tuple[list[str], list[str]]:
    """Return the folders of write-ahead logs outside the repository: those to write to, by priority, and those to read.

    A sandbox that can't write to the git folder may have a $TMPDIR of its own; therefore the common folders are read,
    too. Only existing folders are read. None is written to if the git folder is writable.
    """
    is_writable = _is_writable(repo)
    if not is_writable and _is_denied(repo):
        return [], []  # the lines would never be committed: the append reports the error
    if is_writable and not any(map(os.path.isdir, (each for parents in _wal_parents() for each in parents))):
        return [], []
    own, shared = _wal_folders(repo)
    written = [] if is_writable else own
    found: dict[tuple[int, int], str] = {}  # a folder with two names is read once
    for folder in (*own, *shared):
        try:
            status = os.lstat(folder)
        except OSError:
            continue
        found.setdefault((status.st_dev, status.st_ino or len(found)), folder)
    return written, [folder for folder in found.values() if folder not in written]


def wal_folders(repo: Repo) -> list[str]:
    """Return every folder outside the repository where an agent in a sandbox may leave lines, existing or not."""
    own, shared = _wal_folders(repo)
    return [*own, *shared]


def wal_parents() -> list[str]:
    """Return the folders with the write-ahead logs of all of this user's repositories."""
    return list(dict.fromkeys(each for parents in _wal_parents() for each in parents))


def report_foreign(folders: Iterable[str]) -> None:
    """Report where lines of another repository wait, which can't be committed here."""
    for folder in folders:
        output.write_error(
            f"note: {output.sanitize(folder)} has uncommitted records of another repository; they are not committed here."
            " Run `gitmem doctor`."
        )


def warn_temporary(folder: str) -> None:
    """Warn if a line was written to a temporary folder."""
    if os.path.dirname(folder) != user_state():
        output.write_error(
            f"warning: the new records wait in {output.sanitize(folder)}, a temporary folder. Commands with a different one, such"
            " as in a container, cannot find them, and the folder may be cleared. Give this process write access to the git folder or"
            " your state folder."
        )


def _wal_folders(repo: Repo) -> tuple[list[str], list[str]]:
    """Return the folders that this process would write to, by priority, and the common ones."""
    from gitmem.text.digests import sha256

    project = sha256(os.fsencode(os.path.realpath(repo.common))).hexdigest()[:16]
    own, shared = ([os.path.join(each, project) for each in parents] for parents in _wal_parents())
    return own, shared


def _wal_parents() -> tuple[list[str], list[str]]:
    """Return their parents, which contain the folders of all repositories."""
    user = f"gitmem-{os.getuid()}"
    temporary = os.environ.get("TMPDIR") or SHARED[0]
    own = [user_state(), os.path.join(temporary, user)]
    shared = [os.path.join(folder, user) for folder in SHARED]
    return list(filter(os.path.isabs, own)), list(filter(os.path.isabs, shared))


def user_state() -> str:
    """Return gitmem's folder in the user's state folder, which may be missing."""
    state = os.environ.get("XDG_STATE_HOME") or ""
    if not os.path.isabs(state):  # the standard says to ignore a relative path
        state = os.path.expanduser(os.path.join("~", ".local", "state"))
    return os.path.join(state, "gitmem")


def _is_writable(repo: Repo) -> bool:
    state = repo.state if os.path.isdir(repo.state) else repo.common
    return os.access(state, os.W_OK) and os.access(os.path.join(repo.common, "objects"), os.W_OK)


def _is_denied(repo: Repo) -> bool:
    """Return whether owner and mode of the git folder prevent this user from ever writing to it.

    Its owner could change the mode. If the mode allows it, a sandbox or a read-only disk is the cause: other processes
    may write there, and commit this process's lines.
    """
    groups = {os.getegid(), *os.getgroups()}
    state = repo.state if os.path.isdir(repo.state) else repo.common
    for folder in (state, os.path.join(repo.common, "objects")):
        try:
            found = os.stat(folder)
        except OSError:
            continue
        bit = 0o020 if found.st_gid in groups else 0o002
        if found.st_uid != os.geteuid() and not found.st_mode & bit and not os.access(folder, os.W_OK):
            return True
    return False


# The variables in which clients pass their own session id to the commands that they run.
SESSION_VARIABLES = (
    "CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID", "COPILOT_AGENT_SESSION_ID", "GEMINI_SESSION_ID", "OPENCODE_SESSION_ID",
)  # fmt: skip
# The variables that clients set for their commands, with or without a session: the caller is not a person.
MARKERS = (
    ("CLAUDECODE", "claude-code"), ("CODEX_CI", "codex"), ("CODEX_SANDBOX", "codex"),
    ("CODEX_SANDBOX_NETWORK_DISABLED", "codex"), ("GEMINI_CLI", "gemini"), ("CURSOR_AGENT", "cursor"),
    ("OPENCODE", "opencode"), ("CLINE_ACTIVE", "cline"), ("COPILOT_CLI", "copilot"), ("AI_AGENT", ""),
)  # fmt: skip
# The variables in which CI passes the branch to merge into and the one to merge.
_MERGED = (
    ("GITHUB_BASE_REF", "GITHUB_HEAD_REF"),
    ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME"),
)
_REPO_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR")
_left: list[Store] = []  # stores of an ending process, referenced because an unreferenced store is closed
IDENTITIES = ("GITMEM_AGENT_IDENTITY", "LUMENFLOW_AGENT_IDENTITY")
ALLOW_SECRET = "GITMEM_ALLOW_SECRET"  # noqa: S105  (the name of a variable)


class Environment:
    """The repository and the caller of one command. As a context manager it closes the store.

    Args:
        directory: The value of -C, relative to the current folder.
        as_: The value of --as.
        json: Whether to answer in JSON.
        commit: Whether to commit records before the answer.
    """

    def __init__(
        self, directory: str | None = None, as_: str | None = None, json: bool = False, commit: bool = False
    ) -> None:
        self.commit = commit
        self.directory = directory
        self.as_ = as_
        self.json = json
        self._repo: Repo | None = None
        self._store: Store | None = None
        self._caller: Caller | None = None
        self.allows_secret = variable(ALLOW_SECRET) == "1"  # a person decides it, for one command
        self.calls_servers = True  # also those of A2A, by their URL: what is handed over leaves this machine
        self.is_hook = False  # a client's hook prints only its answer
        self.reads_signals = False  # a live session reads its signals
        self.stop: StopWatching | None = None  # of a server: ends a wait early, as else a signal does
        self.is_repeated = False  # whether this is the second try, after a damaged index was removed
        output.set_options(directory, as_, self.has_remote, self.is_agent)
        self._shown: dict[str, str] = {}
        if as_ == "":  # an unset variable in a script must not change the caller
            raise UsageError(
                "--as is empty. Nothing was written.",
                hint="Check whether a shell variable in the command is unset.",
                code="unknown-session",
                next=["gitmem roster"],
            )

    def is_agent(self) -> bool:
        """Return whether a client's variable shows that an agent runs the command."""
        return self.client is not None or self.client_session is not None

    def has_remote(self) -> bool:
        """Return whether the repository has a remote; True without a repository that can be read."""
        from gitmem.git import config

        try:
            return config.has_remote(self.trusted_repo().common)
        except (GitmemError, OSError):
            return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        damage = None
        if isinstance(error, Exception) and self._repo is not None and not self.is_repeated:
            from gitmem.index import index_file

            is_recorded = self._store is not None and self._store.recorded
            damage = index_file.error_for(error, self._repo, machine(), recorded=is_recorded)
        self.close(ends=output.is_last())
        if damage is not None:
            raise damage from error

    def close(self, *, ends: bool = False) -> None:
        """Close the store; the next use opens it again. Start the committer and autosync if they are needed.

        Args:
            ends: Whether the process ends after this.
        """
        store, self._store, self._caller = self._store, None, None
        if store is not None:
            if store.log.left_in is not None and not self.is_hook:
                warn_temporary(store.log.left_in)
            store.close(closes_index=not ends)
            _left.extend([store] if ends else [])
        if store is not None and store.log.left_in is None and self._needs_committer(store):
            self.start_committer()
        if (self.reads_signals or (store is not None and store.wrote)) and self._may_sync():
            self._start_autosync(store.wrote if store is not None else 0)

    def _needs_committer(self, store: Store) -> bool:
        """Return whether records wait for a commit, or what was committed or received here has perhaps to wake somebody."""
        if store.recorded and store.commit_after:
            return True
        if not (store.recorded or store.received or (self.is_hook and (store.wrote or store.waits()))):
            return False
        from gitmem.agents import doors

        return bool(doors.sessions(store.doors_folder))

    def start_committer(self) -> None:
        """Start the committer, or commit in this process where ended processes would remain as zombies."""
        from gitmem import commit_process

        if commit_process.is_wanted(self.repo):
            self._start("commit-waiting")
        elif commit_process.is_off(self.repo):
            try:
                self.store().commit_waiting()
            except (GitmemError, OSError):
                return  # the records wait, and doctor reports why

    def _start(self, job: str) -> None:
        """Start a background process for this repository."""
        from . import background

        background.start([*self.same_repo_options, "background", job])

    def sync_if_due(self) -> None:
        """Start a background sync from a long-lived process, which calls this repeatedly and keeps its store open."""
        store = self.store()
        how, store.wrote = store.wrote, 0
        self._start_autosync(how)

    def _start_autosync(self, how: int) -> None:
        """Start a background sync if autosync is on and a sync is due.

        The calling command has done its work: this must not delay it, and no error here becomes an error of it.

        Args:
            how: `IF_DUE`, `LATER` or `NOW` of `commit_process`.
        """
        from gitmem.sync import autosync

        from . import background

        try:
            if self.repo.by_folder:  # a commit may contain such a repository
                from gitmem.sync.sync_remotes import refuse_untrusted

                refuse_untrusted(self.repo)
            if autosync.wants(self.repo, how, time.time()):
                directory = ["-C", self.directory] if self.directory else []
                background.start([*directory, "background", "autosync"])
        except Exception:
            return

    def _may_sync(self) -> bool:
        """Return whether the config mentions autosync. Most don't, and then nothing is imported for it."""
        try:
            with open(os.path.join(self.repo.common, "config"), "rb") as file:
                return b"autosync" in file.read().lower()
        except (OSError, GitmemError):
            return False

    @property
    def folder(self) -> str:
        """The folder that the command runs in. Raise UsageError if it does not exist."""
        try:
            folder = os.path.join(os.getcwd(), self.directory or "")
        except OSError as error:
            raise UsageError(
                f"Cannot read the current directory ({error.strerror}).", hint="Change to another directory."
            ) from error
        if self.directory and not os.path.isdir(folder):
            raise UsageError(f"-C: no such directory: {self.directory}", code="no-such-folder")
        return folder

    @property
    def repo(self) -> Repo:
        """The repository that the command works in. -C outranks the variables that a hook or alias of git passes on."""
        if self._repo is None:
            given = self._named_by_variables()
            self._repo = find(
                self.folder,
                named=bool(self.directory),
                git_dir=given.get("GIT_DIR"),
                work_tree=given.get("GIT_WORK_TREE"),
                common_dir=given.get("GIT_COMMON_DIR"),
            )
        return self._repo

    def _named_by_variables(self) -> dict[str, str]:
        """Return git's variables that name the repository, unless -C does; the folder of a hook is not the user's choice."""
        if self.directory and not self.is_hook:
            return {}
        return {name: value for name in _REPO_VARIABLES if (value := os.environ.get(name))}

    def trusted_repo(self) -> Repo:
        """Return the repository for a command that opens no store; raise StoreError if git does not trust it."""
        from gitmem.git import repository

        repository.reject_untrusted(self.repo)
        return self.repo

    @property
    def same_repo_options(self) -> list[str]:
        """The options with which another process finds the same repository; none where variables name it, which are made absolute."""
        repo = self.repo
        if not self._named_by_variables():
            return ["-C", repo.worktree or os.path.abspath(self.folder)]
        values = (repo.git_dir, repo.worktree, repo.common)
        os.environ.update({name: value for name, value in zip(_REPO_VARIABLES, values, strict=True) if value})
        return []

    def note_top(self) -> None:
        """Let each `next` with paths act at the top of the work tree, where they begin, unless the command runs there."""
        top = self.repo.worktree
        if top is not None and os.path.realpath(self.folder) != os.path.realpath(top):
            output.set_top(top)

    def paths(self, typed: Sequence[str]) -> list[str]:
        """Return files and folders from the command line as paths from the top of the work tree."""
        if not typed:
            return []
        from gitmem.memory import anchors

        self.note_top()
        return [anchors.from_root(self.repo, self.folder, each) for each in typed]

    @property
    def session(self) -> str | None:
        """The session id in GITMEM_SESSION, if any."""
        return variable("GITMEM_SESSION")

    @property
    def clients(self) -> list[tuple[str, str]]:
        """The variables of the clients that run us, one within the other, each with the session id in it."""
        return [(name, value) for name in SESSION_VARIABLES if (value := variable(name))]

    @property
    def client_session(self) -> tuple[str, str] | None:
        """The first of them."""
        return next(iter(self.clients), None)

    @property
    def client(self) -> str | None:
        """The client whose marker variable is set."""
        return next((client for name, client in MARKERS if os.environ.get(name)), None)

    @property
    def identity(self) -> str | None:
        """The agent identity in the first variable that has one."""
        return next((value for name in IDENTITIES if (value := variable(name))), None)

    def merge_request(self) -> tuple[str, str | None]:
        """Return the branch to merge into, and that to merge, if CI says it.

        Raises:
            UsageError: `no-target`.
        """
        for target, branch in _MERGED:
            if found := variable(target):
                return found, variable(branch)
        names = " nor ".join(target for target, _ in _MERGED)
        raise UsageError(
            f"Neither {names} is set, so this is no job for a pull request or merge request. Nothing was checked.",
            hint="Elsewhere, set the first one to the branch to merge into, such as GITHUB_BASE_REF=main.",
            code="no-target",
        )

    @property
    def job_summary(self) -> str | None:
        """The file for the summary of a job on GitHub."""
        return variable("GITHUB_STEP_SUMMARY")

    def is_nested(self, own: str | None) -> bool:
        """Return whether another agent has started the calling one, and has passed on the variables of its own client.

        Args:
            own: The session id that the client which runs us has passed to us.
        """
        return bool(self.session) or any(variable(name) not in (None, own) for name in SESSION_VARIABLES)

    @property
    def own_name(self) -> str | None:
        """The name of the acting session's files; None if that is unknown, or if the command needed no store."""
        if self._store is None:
            return None
        claimed = self.as_ or self.session or (self.client_session or ("", None))[1]
        return claimed if self._caller is None else self._caller.session_id

    def answer(
        self, outcome: Answered, lines: Callable[[Answered], Sequence[str]], **how: Unpack[Form]
    ) -> bool:
        """Print the outcome of the command, see `output.answer`; return False if the output is closed."""
        return output.answer(self.json, outcome, lines, **how)

    def who(self) -> CallerClaims:
        """Return everything that identifies the caller."""
        from gitmem.agents.caller import CallerClaims

        return CallerClaims(
            as_=self.as_,
            session=self.session,
            client_session=self.client_session,
            other_clients=self.clients[1:],
            terminal=output.is_terminal(sys.stdin),  # not the output: a pipe does not change the caller
            identity=self.identity,
            client=self.client,
        )

    def caller(self, *, dry_run: bool = False) -> Caller:
        """Return the caller; raise UsageError if nothing identifies it, or more than one session is possible.

        Args:
            dry_run: Nothing is written, so nobody needs to be identified: return a caller without a name then.
        """
        if dry_run and self.caller_if_any() is None:
            from gitmem.agents.caller import NOBODY, Caller

            return Caller(NOBODY, "", "nobody")
        if self._caller is None:
            from gitmem.agents import caller

            found = caller.find(self.store(), self.who())
            assert found is not None
            self._caller = found
            if found.remark and not self.json:  # JSON answers have a field for it
                output.write_error(f"note: {output.sanitize(found.remark)}")
                found.remark = None
        return self._caller

    def caller_if_any(self) -> Caller | None:
        """Return the caller, or None if it is not clear."""
        if self._caller is None:
            from gitmem.agents import caller

            self._caller = caller.find(self.store(), self.who(), must=False)
        return self._caller

    def memory(self) -> Store:
        """Return the store as the caller sees it, with its private nodes: for what is shown to it, or changes nodes."""
        from gitmem.memory import reader_store

        return reader_store.for_reader(self.store(), self.caller_if_any)

    def store(self, *, long_lived: bool = False) -> Store:
        """Return the store, which is opened once.

        Args:
            long_lived: Whether many reads and writes will follow, which are worth the import of dulwich.
        """
        if self._store is None:
            from gitmem.open_store import open_store

            from . import background

            written, read = external_wals(self.repo)
            self._store = open_store(
                self.repo,
                machine=machine(),
                long_lived=long_lived,
                commit_after=0.0 if self.commit else background.commit_window(),
                wal_elsewhere=written,
                wals_read=read,
                keys_folder=os.path.join(user_state(), "keys"),
                key_file=variable("GITMEM_KEY_FILE") or "",
                progress=None if self.is_hook else output.progress(),
            )
            self._store.doors_folder = os.path.join(user_state(), "doors")
            self._store.allow_secret = self.allows_secret and not self.is_hook
            self._store.starts_upkeep = lambda: self._start("upkeep")
            output.set_addresses(self.short_address)
            self._store.log.wal_parents = wal_parents()
            if not self.is_hook:
                outside = (*self._store.log.elsewhere, *self._store.log.others)
                report_foreign(wal.folder for wal in outside if wal.is_of_other_repo())
        return self._store

    def short_address(self, address: str) -> str:
        """Return how an address is shown."""
        from gitmem.agents import presence

        if address not in self._shown:
            store = self.store()
            with store.lock:  # `serve` prints while its threads use the store
                self._shown[address] = presence.short_address(store, address)
        return self._shown[address]


def run_in(make: Callable[[], At], job: Callable[[At], Answer]) -> Answer:
    """Run a job in an environment, and again after a damaged index if nothing was printed or recorded before."""
    try:
        with make() as at:
            return job(at)
    except Exception as error:
        if not getattr(error, "may_repeat", False) or output.has_written():
            raise
    with make() as at:
        at.is_repeated = True
        return job(at)


def variable(name: str) -> str | None:
    """Return a variable's value, or None if it is unset or empty; raise UsageError if it is not UTF-8."""
    value = os.environ.get(name)
    if value and not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise UsageError(f"{name} is not valid UTF-8. Nothing was written.", code="not-utf8") from None
    return value or None


def machine() -> str:
    """Return the name of this machine, for the file name of the index."""
    return os.uname().nodename


# The functions of commands that show the signals, print a document, or run for another program.
SILENT = frozenset(
    ("inbox", "watch", "gate", "mcp", "demo", "completion", "context", "recover", "export", "background")
)  # fmt: skip
INBOX = "gitmem inbox"
COMMIT_SECONDS = 5.0
ANSWER_SECONDS, PAUSE_SECONDS = 1.0, 0.1  # each look runs git


def note_commits(at: Environment) -> None:
    """Record the commits that were made in this worktree since the last look, if a session runs the command."""
    if at.own_name is not None:
        look_for_commits(at)


def look_for_commits(at: Environment) -> None:
    """Record the commits that were made in this worktree since the last look."""
    from gitmem.agents import heartbeats

    if heartbeats.has_new_commits(at.repo):
        from gitmem.history import commits

        commits.try_note(at.store(), _clues(at), seconds=COMMIT_SECONDS)


def look_before_answer(at: Environment) -> bool:
    """Record the new commits of this worktree before an answer that depends on them.

    Without a session it does so only with git's hook: else a session's next command may say more of them.

    Returns:
        Whether the answer may lack some, because their notes are still on the way.
    """
    from gitmem.agents import heartbeats

    at.store()
    if not heartbeats.has_new_commits(at.repo) or (
        at.own_name is None and not heartbeats.has_commit_hook(at.repo)
    ):
        return False
    return _wait_for_commits(at)


def _wait_for_commits(at: Environment) -> bool:
    """Record the commits of a command's worktree; wait a moment for another process that does so, and for the note of git's hook.

    Returns:
        Whether some may still be missing.
    """
    from gitmem.agents import heartbeats
    from gitmem.history import commits

    until = time.monotonic() + ANSWER_SECONDS
    while at.repo.worktree is not None:
        try:
            commits.note(at.store(), _clues(at), seconds=ANSWER_SECONDS)
        except (GitmemError, OSError, ValueError, KeyError):
            return False  # they can't be recorded here, now or later
        if not heartbeats.has_new_commits(at.repo):
            return False
        if time.monotonic() >= until:
            return True
        time.sleep(PAUSE_SECONDS)
    return False


def _clues(at: Environment) -> Clues:
    """Return what tells of whom the commits are. An agent's own command runs in the turn of its session."""
    from gitmem.history.commits import Clues

    return Clues(at.caller_if_any(), in_turn=at.client_session is not None)


def tell_about_claims(at: Environment) -> None:
    """Renew the session's claims and tell it about contested ones. Where it has none, this only tests two files."""
    name = at.own_name or "/"
    paths = (os.path.join(at.repo.state, "claims", each, name) for each in ("due", "notices"))
    if "/" not in name and any(map(os.path.exists, paths)):
        from gitmem.work import claim_work

        caller = at.caller_if_any()
        for line in claim_work.at_command(at.store(), caller) if caller is not None else ():
            output.write_error(output.sanitize(line))


def notice(at: Environment, body: Callable[..., int | None]) -> UnreadNotice | None:
    """Return the notice of the caller's unread signals; None without one, or if the command shows them. Without a flag nothing else is read."""
    name = at.own_name
    if name is None:
        return None
    from gitmem.agents import heartbeats

    if not heartbeats.is_flagged(at.repo.state, name):
        return None
    return None if body.__name__ in SILENT else unread_notice(at, name)


class UnreadNotice(Outcome):
    """How many signals wait for a session, and the command that shows them."""

    def __init__(self, unread: int, wants_answer: int) -> None:
        self.unread = unread
        self.wants_answer = wants_answer
        self.next = output.with_options([INBOX])

    @property
    def line(self) -> str:
        """The notice in one line."""
        wants = "wants" if self.wants_answer == 1 else "want"
        asked = f" ({self.wants_answer} {wants} an answer)" if self.wants_answer else ""
        return f"{self.unread} unread{asked}: {self.next[0]}"


def unread_notice(at: Environment, name: str) -> UnreadNotice | None:
    """Return the notice for the caller, or None. Never raises: the answer matters more.

    Args:
        name: The name of the session's flag, which is raised.
    """
    from gitmem.agents import heartbeats

    try:
        caller = at.caller_if_any()
        if caller is None or heartbeats.is_served(at.repo.state, caller.session_id or name):
            return None
        store = at.store()

        def count(db: sqlite3.Connection) -> tuple[int, int]:
            from gitmem.signals.empty_inbox import unread_counts

            return unread_counts(db, caller.reader, caller.session_id, caller.workspace, store.now())

        # A command that did without the latest signals counts without them; only where none is known, something was new.
        unread, asked = (None if store.was_exact else store.as_indexed(count)) or (0, 0)
        if not unread:
            unread, asked = store.with_one_snapshot(lambda: count(store.db()), exact=True)
        if not unread:
            from gitmem.agents import delivery

            delivery.correct_flags(store, caller.reader, caller.session_id)
    except Exception:
        return None
    return UnreadNotice(unread, asked) if unread else None
