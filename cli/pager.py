"""Show an answer page by page, by the pager that the user has chosen for git."""

from __future__ import annotations

import os

from gitmem.git import run as git

from .render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from gitmem.agents.caller import CallerClaims
    from gitmem.store import Store

SETTING = "gitmem.pager"
TRUE = ("true", "yes", "on", "1")
NO_PAGER = ("", "cat")  # as for git
CANNOT_RUN = (126, 127)  # exit statuses of the shell: not executable, not found


def choose(store: Store, caller: CallerClaims, *, asked: bool) -> Callable[[str], bool] | None:
    """Return `page` if the option or the setting asks for it, else None.

    The setting is for people: agents run in terminals, too, and would wait for the pager's end.
    """
    is_agent = caller.session or caller.client_session or caller.client is not None
    is_on = asked or (not is_agent and store.settings().get(SETTING, "").lower() in TRUE)
    return page if is_on else None


def page(text: str) -> bool:
    """Show text in the pager; print it if there is none, or if it cannot be run. Return False if nobody reads it."""
    output.end_progress()
    command = users_pager()
    if command in NO_PAGER:
        return output.write(text)
    import subprocess

    environment = {"LESS": "FRX", "LV": "-c", **os.environ}  # as git: end with the text, show colours
    try:
        child = subprocess.Popen(command, shell=True, stdin=subprocess.PIPE, env=environment)  # noqa: S602  (the user's own command line, as git runs it)
    except OSError:
        return output.write(text)
    _feed(child, text)
    if _status(child) in CANNOT_RUN:
        output.note([f"Cannot run the pager: {command}; the answer is printed without it."])
        return output.write(text)
    return True


def users_pager() -> str:
    """Return what git would run: GIT_PAGER, `core.pager` of the user or the system, PAGER, or git's default.

    git is asked in the root folder: the configuration of a repository does not count, because it may come with a copy
    that somebody else has made.
    """
    found = git.run("", ["var", "GIT_PAGER"], cwd=os.path.abspath(os.sep), check=False)
    return found.out.decode("utf-8", "surrogateescape").strip() if found.code == 0 else ""


def _feed(child: subprocess.Popen[bytes], text: str) -> None:
    """Write text to the pager. Its reader may end it before all is read."""
    assert child.stdin is not None
    try:
        child.stdin.write((text + "\n").encode("utf-8", "backslashreplace"))
        child.stdin.close()
    except (OSError, KeyboardInterrupt):
        try:
            child.stdin.close()
        except OSError:
            return


def _status(child: subprocess.Popen[bytes]) -> int:
    """Wait for the pager. Ctrl-C is for the pager alone while it runs."""
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:
            continue
