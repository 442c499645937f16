"""Turn typer's errors into ours: with the mistake, and the command that was probably meant."""

from __future__ import annotations

from gitmem.errors import UsageError

from .parser_table import COMMANDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


# Words that people try, and the commands that they mean.
SYNONYMS = {
    "gitmem signal 'your message' --to NAME": (
        "send",
        "say",
        "tell",
        "message",
        "msg",
        "post",
        "ask",
        "propose",
    ),
    "gitmem signal 'your message' --broadcast": ("broadcast", "announce"),
    "gitmem reply ID 'agreed' --agree": ("agree", "accept", "approve", "ack"),
    "gitmem reply ID 'your reason' --reject": ("reject", "refuse", "decline"),
    "gitmem reply ID 'your proposal' --counter": ("counter",),
    "gitmem mem ready": ("ready",),
    "gitmem claim PATH": ("lock", "reserve"),
    "gitmem gate --wu ID": ("wu:prep", "prep", "wu:done"),
    "gitmem task list": ("tasks", "todo"),
    "gitmem mem delete ID": ("redact",),
    "gitmem reply ID 'your answer'": ("answer", "respond"),
    "gitmem inbox": ("read", "receive", "recv", "check", "mail", "messages", "unread", "signals"),
    "gitmem whoami": ("status", "who", "me", "id"),
    "gitmem roster": ("status", "who", "list", "agents", "ls", "peers", "sessions"),
    "gitmem session start": ("start", "join", "register", "login"),
    "gitmem session end": ("end", "stop", "leave", "exit", "logout"),
    "gitmem log": ("history", "story"),
    "gitmem sync": ("push", "pull", "fetch", "publish"),
    "gitmem doctor": ("check", "fsck", "verify"),
    "gitmem thread ID": ("threads", "conversation"),
    "gitmem converged ID": ("wait", "agreed", "converge"),
    "gitmem mem create 'what to remember'": ("remember", "memorize", "note", "create", "add", "memory"),
    "gitmem mem search 'words'": ("search", "recall", "find", "memory"),
    "gitmem mem context": ("context",),
    "gitmem import lumenflow .": ("migrate", "lumenflow"),
    "gitmem agents-md": ("agents", "instructions", "teach"),
    "gitmem mcp": ("server", "serve"),
    "gitmem hooks install": ("hook", "install", "setup"),
    "gitmem init --uninstall": ("uninstall", "remove"),
}
GROUPS = {
    "gitmem mem": ("such as create, context, search, ready or recover", "gitmem mem list"),
    "gitmem import": ("lumenflow", "gitmem import lumenflow ."),
    "gitmem session": ("start, set, end or list", "gitmem session list"),
    "gitmem name": ("add, remove or list", "gitmem name list"),
    "gitmem claim": ("a path, or list, check or release", "gitmem claim list"),
    "gitmem task": ("list, show, take, ask, done or cancel", "gitmem task list"),
    "gitmem hooks": ("install, uninstall, status or test", "gitmem hooks status"),
}
# Words for what is done in another way, or not at all, with the way that exists.
ABSENT = {
    "redact": "Records are never rewritten: `gitmem mem delete ID` hides a node; revoke a secret that was recorded.",
}
HIDDEN = {"upkeep", "commit-waiting", "note-commits"}  # what only other programs run
TEXTS = ("gitmem mem create", "gitmem mem checkpoint")  # they take one text
_COMMON = ("--json", "--as", "-C")


def usage_of(error: Exception, args: Sequence[str]) -> UsageError | None:
    """Return our error for one of typer's, or None for any other error."""
    format_message = getattr(error, "format_message", None)
    if format_message is None:
        return None
    context = getattr(error, "ctx", None)
    path = str(context.command_path) if context is not None else _path(args)
    message = str(format_message()).strip()
    option = getattr(error, "option_name", None)
    if path in GROUPS and (option in _COMMON or message.startswith("Missing command")):
        words, example = GROUPS[path]
        return UsageError(
            f"{path} needs a command: {words}. Nothing was written.",
            hint=f"Options follow the command, as in: {example} --json",
            next=[example, f"{path} --help"],
        )
    meant = _similar_commands(message)
    if message.startswith("No such command "):  # typer also offers commands that hooks run
        message = (
            message.partition(" Did you mean")[0] if meant or HIDDEN & set(message.split("'")) else message
        )
    message = message if message.endswith((".", "?", "!")) else message + "."
    hint = _hint(path, message, option, getattr(error, "possibilities", None)) or (
        f"Did you mean {' or '.join(f'`{each}`' for each in meant)}?"
        if meant
        else f"Run `{path} --help` for its usage."
    )
    complete = [each for each in meant if not any(word.isupper() for word in each.split())]
    return UsageError(
        f"{message} Nothing was written.", hint=hint, suggestions=meant, next=[*complete, f"{path} --help"]
    )


def _path(args: Sequence[str]) -> str:
    """Return the command of a command line, `gitmem mem create`, for errors that don't have it."""
    path = "gitmem"
    for word in without_common(args):
        if word.startswith("-") or path not in ("gitmem", *GROUPS):
            break
        path = f"{path} {word}"
    return path


def _similar_commands(message: str) -> list[str]:
    if not message.startswith("No such command '"):
        return []
    word = message.removeprefix("No such command '").partition("'")[0].lower()
    group, _, verb = word.rpartition(":")  # as in LumenFlow: `mem:signal`, `agent:session`
    path = f"gitmem {verb}" if verb in COMMANDS else f"gitmem {group} {verb}"
    if group and path.removeprefix("gitmem ") in COMMANDS:
        return [f"{path} --help"]
    return [command for command, words in SYNONYMS.items() if word in words]


def _hint(path: str, message: str, option: str | None, near: Sequence[str] | None) -> str:
    """Return advice for frequent mistakes with messages and texts, or ""."""
    if path == "gitmem" and message.startswith("No such command '"):
        return ABSENT.get(message.split("'")[1].lower(), "")
    if path == "gitmem delegate" and message.startswith("Missing argument"):
        return "Usage: gitmem delegate 'what to do' --to NAME"
    speaks = path in ("gitmem signal", "gitmem reply")
    if not speaks and path not in TEXTS:
        return ""
    what = "message" if speaks else "text"
    to = "ID " if path == "gitmem reply" else ""
    if "unexpected extra argument" in message:
        return f"Quote the {what} so that the shell passes it as one argument: {path} {to}'your whole {what}'"
    if speaks and message.startswith("Missing argument"):
        more = "" if to else " --to NAME"
        return f"Usage: {path} {to}'your message'{more}"
    if to and option is not None and option.startswith("--"):
        return f"`gitmem signal 'your message' --reply-to ID` has more options; `{path} --help` lists those of reply."
    if option is not None and not near and (speaks or message.startswith("No such option")):
        before = to or ("--to NAME " if speaks else "")
        example = "'-1 for this'"
        return f"Put -- before a {what} that starts with -, as in: {path} {before}-- {example}"
    return ""


def without_common(args: Sequence[str]) -> list[str]:
    """Return a command line without the program's name, -C and --as."""
    found: list[str] = []
    rest = list(args)
    while rest:
        arg = rest.pop(0)
        if arg == "--":
            return [*found, arg, *rest]
        if arg in ("-C", "--as"):
            rest = rest[1:]
        elif not arg.startswith(("--as=", "-C")):
            found.append(arg)
    return found
