"""How many recipients of a new proposal have to agree, and which of them in any case: `need` and `veto`, checked before it is recorded.

`docs/format.md`, section 8, "Agreement", has the rule. A signal without them does not load this module.
"""

from __future__ import annotations

from .. import records
from ..agents import addressing
from ..errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agents.addressing import Resolved
    from ..agents.caller import Caller
    from ..store import Store
    from .signal_options import SignalOptions


def check(options: SignalOptions, intent: str, *, begins: bool) -> None:
    """Raise UsageError unless a signal may have a quorum: a PROPOSE to somebody that begins a thread.

    Args:
        options: Those of the signal, with `need` or `veto`.
        intent: Its intent.
        begins: Whether it begins a thread.
    """
    need = options.get("need")
    if intent != "PROPOSE" or not begins:
        this = f"this is {intent}" if begins else "this thread exists already"
        raise _refusal(f"--need and --veto are for a PROPOSE that begins a thread, and {this}.")
    if need is None:
        raise _refusal("--veto is for --need: without it nothing is agreed on until all agree.")
    if not records.fits("signal", "need", str(need)):
        raise _refusal(f"--need must be a number from 1 to 9999, not {str(need)[:60]!a}.")
    if options.get("broadcast") or not (options.get("to") or options.get("veto")):
        raise _refusal(f"--need {need} counts those whom --to names, and nobody is named.")


def with_vetoes(
    store: Store, caller: Caller, named: Sequence[Resolved], options: SignalOptions
) -> tuple[Sequence[Resolved], list[str]]:
    """Return the recipients of a proposal, those who may veto among them, and the addresses of the latter.

    Args:
        store: The open store.
        caller: The sender.
        named: The recipients that `--to` names.
        options: Those that `check` accepts.

    Raises:
        UsageError: A veto names nobody, or the caller; or more have to agree than are asked.
    """
    vetoes = addressing.resolve(
        store,
        options.get("veto") or (),
        caller=caller,
        allow_unseen=bool(options.get("allow_unseen")),
        option="--veto",
    )
    if any(each.address in caller.ids for each in vetoes):
        raise _refusal(
            "--veto names you: who proposes has agreed, and withdraws with `gitmem reply ID 'why' --reject`."
        )
    every = list({each.address: each for each in (*named, *vetoes)}.values())
    others = [each for each in every if each.address not in caller.ids]
    need = int(options.get("need") or 0)
    if need > len(others):
        raise _refusal(f"--need {need} is more than can agree: the proposal asks {len(others)}, without you.")
    return every, [each.address for each in vetoes]


def _refusal(problem: str) -> UsageError:
    return UsageError(
        f"{problem} Nothing was written.",
        hint="Such as --intent propose --to A,B,C --need 2 --veto A: two of the three, A among them.",
        code="bad-quorum",
        next=["gitmem signal --help"],
    )
