"""A peer floods the memory, or dates lines in the future: one's own notes stay in the context, and the log keeps its end."""

from __future__ import annotations

import pytest

from .test_trust_senders import Attack, attack, line, now

__all__ = ["attack"]


@pytest.mark.parametrize("writers", [1, 500])
@pytest.mark.parametrize("number", [500, 1_500])
def test_no_number_of_forged_nodes_pushes_one_s_own_out_of_the_context(
    attack: Attack, writers: int, number: int
) -> None:
    """Of one writer or of many, urgent and newer than all others; a share of them is shown."""
    attack.json("mem", "create", "Ours: the parser drops tabs", "--wu", "WU-1")
    attack.json("mem", "create", "Ours too: spaces stay", "--wu", "WU-1")
    attack.sync()
    attack.push("memory", *(
        line("node", now(3), id=f"mem-ev{at:08}", type="discovery", lifecycle="wu", wu_id="WU-1", priority="P0",
             content=f"Theirs {at}", sender_identity=f"evil:b:c{at % writers}", sender_session="sess-evil00000001")
        for at in range(number)
    ))  # fmt: skip

    block = attack.json("mem", "context", "--wu", "WU-1")["block"]

    assert "Ours: the parser drops tabs" in block and "Ours too: spaces stay" in block
    assert "Theirs" in block


def test_lines_dated_in_the_future_do_not_own_the_end_of_the_log(attack: Attack) -> None:
    """They are shown, apart; `entries` is what happened last."""
    attack.push("signals", *(
        line("signal", "2076-01-01T00:00:00.000000Z", signal_id=f"sig-ev{at:08}", thread_id=f"thread-ev{at:08}", origin="cli",
             message="In fifty years", sender_identity="evil:b:c", sender_session="sess-evil00000001", recipients=["evil:b:c"],
             sender_name="Evil", intent="INFO", requires_ack=False, recipient_type="direct")
        for at in range(30)
    ))  # fmt: skip
    attack.json("mem", "create", "Ours: the parser drops tabs", "--wu", "WU-1")

    found = attack.json("log", "-n", "5")

    assert found["entries"][-1]["content"] == "Ours: the parser drops tabs"
    assert not [each for each in found["entries"] if each.get("message") == "In fifty years"]
    assert len(found["ahead"]) == 5
    text = attack("log", "-n", "5").out.splitlines()
    assert text[0].startswith("Dated more than a day ahead") and "parser drops tabs" in "".join(text[6:])
