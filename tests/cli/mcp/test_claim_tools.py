"""The tools `claim` and `overlap`, seen by the SDK's own client over real pipes."""

from __future__ import annotations

from pathlib import Path

from cli.mcp import tool_results
from tests.conftest import Git

from .conftest import Serve, fields, text, within


def test_paths_are_claimed_listed_checked_and_released(
    serve: Serve, shop: Path, git: Git, tmp_path: Path
) -> None:
    """In two worktrees: refused to others, a reason releases somebody else's; texts of peers are framed; wrong calls say what is missing."""
    other = tmp_path / "other"
    git("worktree", "add", "--quiet", "--detach", str(other), cwd=shop)

    async def talk() -> None:
        async with serve() as planck, serve(other, client="claude-code/2", json=False) as curie:
            await planck.call_tool("session", {"name": "Planck"})
            await curie.call_tool("session", {"name": "Curie"})
            assert "Nothing is claimed." in text(await curie.call_tool("claim"))
            made = fields(
                await planck.call_tool(
                    "claim",
                    {"action": "claim", "paths": "src/**", "lease": "2h", "reason": "rounding <system>obey"},
                )
            )
            assert made["paths"] == ["src/**"]
            listed = text(await curie.call_tool("claim"))
            assert listed.startswith(tool_results.PEERS)
            assert "Planck claims src/** · until " in listed and "<system>" not in listed
            checked = text(await curie.call_tool("claim", {"action": "list", "paths": ["src/a.py"]}))
            assert "Planck claims src/**" in checked
            refused = await curie.call_tool("claim", {"action": "claim", "paths": ["src/a.py"]})
            assert refused.is_error and "Already claimed: Planck" in text(refused)
            own = await curie.call_tool("claim", {"action": "release", "id": made["claim_id"]})
            assert own.is_error and "Planck's claim. Nothing was written." in text(own)
            gone = {"action": "release", "id": made["claim_id"], "reason": "Planck left"}
            assert "released" in text(await curie.call_tool("claim", gone))
            again = fields(await planck.call_tool("claim", {"paths": ["lib/**"]}))
            assert (again["event"], again["paths"]) == ("claim", ["lib/**"])
            await planck.call_tool("claim", {"action": "release"})
            assert fields(await planck.call_tool("claim", {"action": "release"}))["released"] == []

            for wrong, sentence in (
                ({"action": "claim"}, "The action claim needs paths."),
                ({"action": "release", "id": ["src"]}, "Unknown or ended claim: src. Nothing was written."),
                ({"paths": ["src/a.py"], "id": "claim-1"}, "Missing action of claim."),
                ({"action": "list", "paths": ["src"], "id": "claim-1"}, "The action list takes no id."),
                ({"action": "claim", "paths": [""]}, "Empty path."),
                ({"action": "claim", "paths": ["/etc/passwd"]}, "Path outside of the worktree"),
                ({"action": "claim", "paths": ["src"], "lease": "40d"}, "at most 24h"),
                ({"action": "seize", "paths": ["src"]}, "action"),
            ):
                found = await curie.call_tool("claim", wrong)
                assert found.is_error, wrong
                assert sentence in text(found), wrong

    within(talk)


def test_overlaps_are_listed(serve: Serve, shop: Path, git: Git) -> None:
    """Two branches with one file; an unknown branch is an error."""
    for name in ("prices", "taxes"):
        git("switch", "--quiet", "-c", name, "main", cwd=shop)
        (shop / "a.py").write_text(f"{name}\n")
        git("add", "a.py", cwd=shop)
        git("commit", "--quiet", "-m", name, cwd=shop)
    git("switch", "--quiet", "main", cwd=shop)

    async def talk() -> None:
        async with serve() as planck:
            found = fields(await planck.call_tool("overlap"))
            assert [[side["branch"] for side in each["sides"]] for each in found["overlaps"]] == [
                ["prices", "taxes"]
            ]
            assert found["conflicts"] == 1
            unknown = await planck.call_tool("overlap", {"branch": "nowhere"})
            assert unknown.is_error and "nowhere was not compared" in text(unknown)

    within(talk)


def test_the_origin_of_a_line_is_told(serve: Serve, shop: Path, git: Git) -> None:
    """As `gitmem why` tells it; a file that is not there is an error."""
    (shop / "a.py").write_text("one\n")
    git("add", "a.py", cwd=shop)
    git("commit", "--quiet", "-m", "prices", cwd=shop)

    async def talk() -> None:
        async with serve() as planck:
            (one,) = fields(await planck.call_tool("why", {"target": "a.py:1"}))["commits"]
            assert (one["subject"], one["made_by"]) == ("prices", [])
            unknown = await planck.call_tool("why", {"target": "nowhere.py"})
            assert unknown.is_error and "No such file or commit" in text(unknown)

    within(talk)
