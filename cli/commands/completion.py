"""`gitmem completion`: the script by which a shell completes commands and options. Typer has the scripts."""

from __future__ import annotations

from gitmem.errors import UsageError

from ..environment import Environment
from ..render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

# How each shell reads the script in its start-up file.
USES = {
    "bash": 'eval "$(gitmem completion bash)"',
    "zsh": 'eval "$(gitmem completion zsh)"',
    "fish": "gitmem completion fish | source",
}


def completion(
    at: Environment,
    shell: Annotated[
        str,
        typer.Argument(
            metavar="|".join(USES), help=f"The shell. In its start-up file: {' or '.join(USES.values())}."
        ),
    ],
) -> None:
    """Print the script with which a shell completes commands and options."""
    if shell not in USES:
        raise UsageError(
            f"Unknown shell: {output.sanitize(shell)}; choose from {', '.join(USES)}. Nothing was printed.",
            suggestions=list(USES.values()),
            next=["gitmem completion --help"],
        )
    from ..app import completion_script

    script = completion_script(shell)
    if at.json:  # without --json only the script is printed
        output.write_json({"shell": shell, "script": script, "next": [USES[shell]]})
    else:
        output.write(script)
