"""What people choose with `git config gitmem.*`: name, values, default and meaning of each setting, declared once.

`tools/compile_reference.py` writes the table of docs/settings.md from it, and doctor names the values that do not count.
"""

from __future__ import annotations

from .errors import UsageError
from .outcome import Struct, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

OFF, ON, WARN, BLOCK, REFUSE, PROMPT = "off", "on", "warn", "block", "refuse", "prompt"
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}  # of a duration, in seconds
LEAST_SECONDS, MOST_SECONDS = 1.0, 86400.0
EVERY_MAX = 999  # tool calls: the hook script reads as many bytes at each
VALUE_MAX = 40  # characters of a value in a message
_BOOLEAN = {"true": ON, "yes": ON, "1": ON, "false": OFF, "no": OFF, "0": OFF}


def seconds(text: str) -> float | None:
    """Return the seconds of `30s`, `5m` or a bare number; None if invalid or not between a second and a day."""
    word = text.strip().lower()
    unit = UNITS.get(word[-1:])
    try:
        found = float(word[:-1] if unit else word) * (unit or 1)
    except ValueError:
        return None
    return found if LEAST_SECONDS <= found <= MOST_SECONDS else None


def is_count(text: str) -> bool:
    """Return whether a text is a number of tool calls."""
    return text.isascii() and text.isdecimal() and len(text) <= len(str(EVERY_MAX)) and int(text) > 0


class Setting(Struct):
    """A setting.

    Attributes:
        name: Its name behind `gitmem.`.
        meaning: What it decides.
        choices: The words that it may be.
        form: What else it may be; "" for any text if there are no words, else for nothing.
        accepts: Whether a text has that form; None for any text.
        default: The value without it; "" if that is none of its values.
        example: A value to set in place of an invalid one.
    """

    name: str
    meaning: str
    choices: tuple[str, ...] = ()
    form: str = ""
    accepts: Callable[[str], object] | None = None
    default: str = ""
    example: str = ""

    @property
    def key(self) -> str:
        """Its name for `git config`."""
        return f"gitmem.{self.name}"

    def value(self, found: Mapping[str, str]) -> str:
        """Return its value; the default if there is none, or none that counts.

        Args:
            found: git's configuration, with keys in lower case.
        """
        return self._valid(self._given(found)) or self.default

    def checked(self, found: Mapping[str, str]) -> str:
        """Return its value, for a command that must not go on by the default where another one was meant.

        Raises:
            UsageError: `bad-setting`.
        """
        if problem := self.problem(found):
            raise UsageError(f"{problem} Nothing was written.", code="bad-setting", next=[self.correction])
        return self.value(found)

    def problem(self, found: Mapping[str, str]) -> str:
        """Return a sentence about a value that does not count; "" without one."""
        from .text.sanitize import sanitize

        given = self._given(found)
        if not given or self._valid(given):
            return ""
        valid = ", ".join(filter(None, (*self.choices, self.form)))
        return f"Invalid `git config {self.key}`: {sanitize(given)[:VALUE_MAX]}; valid are {valid}."

    @property
    def correction(self) -> str:
        """The command that sets a valid value."""
        return command("git", "config", self.key, self.example or self.default or self.choices[0])

    def _given(self, found: Mapping[str, str]) -> str:
        return found.get(self.key.lower(), "").strip()

    def _valid(self, given: str) -> str:
        """Return a value as programs compare it; "" if it does not count."""
        word = given.lower()
        word = _BOOLEAN.get(word, word) if OFF in self.choices else word
        if word in self.choices:
            return word
        is_text = self.accepts(given) if self.accepts is not None else not self.choices
        return given if is_text else ""


AUTOSYNC = Setting(
    "autosync",
    "how often gitmem syncs by itself; heeded in the repository's own configuration, where `gitmem setup` writes it",
    (OFF,), "a time such as `30s`, between a second and a day", seconds, OFF, "30s",
)  # fmt: skip
COMMITS = Setting(
    "commits", "whether the log gets the ids of commits that sessions make", (ON, OFF), default=ON
)
GUARD = Setting(
    "guard",
    "what hooks do about claims of others; without it they block a commit and warn before an edit",
    (BLOCK, WARN, OFF),
)
CHECKPOINT_EVERY = Setting(
    "checkpointEvery",
    "tool calls after which hooks save a checkpoint",
    form=f"a number of at most {EVERY_MAX}", accepts=is_count, example="30",
)  # fmt: skip
CHECKPOINT_GATE = Setting(
    "checkpointGate",
    "what `gitmem session end --done` does without a checkpoint of the work unit",
    (OFF, WARN, BLOCK), default=OFF,
)  # fmt: skip
ROLES = Setting(
    "roles",
    "what happens to a role that the vocabulary does not have, where somebody states it",
    (WARN, REFUSE), default=WARN,
)  # fmt: skip
HEADLINE = Setting(
    "headline", "`prompt`: messages may carry the beginning of the user's last words", (PROMPT,)
)
WU = Setting("wu", "the work unit, where the branch name has none")
WORKSPACE = Setting("workspace", "the workspace of new sessions and of people")
KEY = Setting("key", "the key file to write with; heeded in your own configuration (`--global`) alone")
SETTINGS = (AUTOSYNC, COMMITS, GUARD, CHECKPOINT_EVERY, CHECKPOINT_GATE, ROLES, HEADLINE, WU, WORKSPACE, KEY)


def problems(found: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield what does not count in git's configuration: the key, a sentence, and a command that corrects it or ""."""
    known = {each.key.lower(): each for each in SETTINGS}
    for key in found:
        if key in known and (problem := known[key].problem(found)):
            yield known[key].key, f"{problem} The default applies.", known[key].correction
        elif key.startswith("gitmem.") and key not in known:
            yield key, f"`git config {key}` is no setting of gitmem.", ""
