"""Tell a person something by the notifications of the desktop. Texts are arguments or standard input of its program, never parts of a script."""

from __future__ import annotations

import html
import shutil
import subprocess

from gitmem.errors import UsageError
from gitmem.outcome import Struct

LIMIT_SECONDS = 10.0
_OSASCRIPT = ("on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run")
_TOAST = (
    "$line = { [Text.Encoding]::UTF8.GetString([Convert]::FromBase64String([Console]::In.ReadLine())) };"
    "$manager = [Windows.UI.Notifications.ToastNotificationManager, Windows.UI.Notifications, ContentType = WindowsRuntime];"
    "$toast = $manager::GetTemplateContent([Windows.UI.Notifications.ToastTemplateType]::ToastText02);"
    "foreach ($node in $toast.GetElementsByTagName('text')) { [void]$node.AppendChild($toast.CreateTextNode((& $line))) };"
    "$manager::CreateToastNotifier('{1AC14E77-02E7-4E5D-B744-2EB1AE5198B7}\\WindowsPowerShell\\v1.0\\powershell.exe').Show([Windows.UI.Notifications.ToastNotification]::new($toast))"
)
PROGRAMS = ("notify-send", "osascript", "powershell.exe")


class Desktop(Struct):
    """The first program of this machine that notifies."""

    program: str

    def command(self, title: str, text: str) -> tuple[list[str], str]:
        """Return the command that shows one line as title and one as text, and its standard input.

        Args:
            title: It starts with a fixed word, so that no program reads it as an option.
        """
        if self.program == "notify-send":  # which reads markup in the text
            return ["notify-send", "--app-name=gitmem", "--", title, html.escape(text)], ""
        if self.program == "osascript":
            return ["osascript", *(word for line in _OSASCRIPT for word in ("-e", line)), title, text], ""
        from base64 import b64encode

        lines = [b64encode(each.encode("utf-8", "replace")).decode() for each in (title, text)]
        return ["powershell.exe", "-NoProfile", "-Command", _TOAST], "\n".join([*lines, ""])

    def tell(self, title: str, text: str) -> str | None:
        """Show a notification; return why that failed, or None."""
        command, given = self.command(title, text)
        try:
            done = subprocess.run(
                command, input=given.encode(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                timeout=LIMIT_SECONDS, check=False,
            )  # fmt: skip
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            return f"{self.program} failed ({type(error).__name__})"
        return None if done.returncode == 0 else f"{self.program} failed (exit status {done.returncode})"


def desktop() -> Desktop:
    """Return what notifies here.

    Raises:
        UsageError: `no-notifier`.
    """
    found = next(filter(shutil.which, PROGRAMS), None)
    if found is None:
        raise UsageError(
            f"--notify: no program for notifications was found; it can be {', '.join(PROGRAMS)}.",
            hint="On Linux, notify-send is in the package libnotify-bin or libnotify.",
            code="no-notifier",
        )
    return Desktop(found)
