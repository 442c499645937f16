"""A sync among others that is killed at any step: the next one of anybody makes it good."""

from __future__ import annotations

import pytest

from gitmem.log import ref
from tests.clones import Hub, git
from tests.hazards.test_sync_killed import exchange_killed_at
from tests.hazards.test_sync_outbox import GOOD, boxes, clones, crowd, leave


@pytest.mark.deep
def test_a_sync_that_is_killed_while_outboxes_wait_leaves_nothing_to_mend_by_hand(hub: Hub) -> None:
    """Before, between and after its own outbox, the fold and the deletion: each line is there once, no outbox stays."""
    a, b, c = clones(hub, "abc")
    said: list[str] = []
    there: set[str] = set()  # what has left its clone
    for step in range(60):
        said += [f"a{step:02d}", f"b{step:02d}"]
        leave(b, said[-1])
        a.add(said[-2])
        crowd(a)
        if not exchange_killed_at(a, step):
            break
        there.update(text for name in [ref.BRANCH, *boxes(hub)] for text in hub.texts(name))
        if step % 4 == 0:
            assert c.exchange().state in GOOD
            assert boxes(hub) == []
            assert there <= set(hub.texts()), "only what never left its clone may be missing"
    else:
        pytest.fail("the sync never came to its end")
    assert {"a00", "b00"} < there, "some died after their lines had left"
    assert step > 16, "it had too few steps to die at"
    for clone in (a, c, b, a):
        assert clone.exchange().state in GOOD
    assert boxes(hub) == []
    assert sorted(hub.texts()) == sorted(said)
    assert a.tip == b.tip == c.tip == hub.tip() and a.merges() == 0
    git("fsck", "--strict", cwd=hub.path)
