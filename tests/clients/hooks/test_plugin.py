"""OpenCode's plugin, called as OpenCode calls it: with a script that says what it was asked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from gitmem.clients.managed_files import installed_content

NODE = shutil.which("node")
SCRIPT = """#!/bin/sh
# says the event, the session and what it was told
printf '%s\\n' "$1 $OPENCODE_SESSION_ID $(cat)" >>"$0.log"
case $1 in tool.execute.after | chat.message) echo "said at $1" ;; esac
"""
CALLS = """
const { Gitmem } = await import(process.argv[2])
const hooks = await Gitmem({ directory: process.cwd() })
const tool = { tool: "bash", callID: "1" }
const created = (info) => hooks.event({ event: { type: "session.created", properties: { info } } })
await created({ id: "ses_main" })
await created({ id: "ses_child", parentID: "ses_main" })
const said = []
for (const sessionID of ["ses_main", "ses_child", "ses_main"]) {
  const parts = [{ type: "text", text: "hello" }, { type: "text", text: "a file", synthetic: true }]
  await hooks["chat.message"]({ sessionID }, { message: {}, parts })
  const output = { title: "", output: "result", metadata: {} }
  await hooks["tool.execute.after"]({ ...tool, sessionID }, output)
  said.push([parts[0].text, parts[1].text, output.output])
}
const content = { content: [] }
await hooks["tool.execute.after"]({ ...tool, sessionID: "ses_main" }, content)
const shell = { env: {} }
await hooks["shell.env"]({ cwd: "/", sessionID: "ses_main" }, shell)
await hooks.dispose()
console.log(JSON.stringify({ said, content, env: shell.env }))
"""


@pytest.mark.skipif(NODE is None, reason="there is no node")
def test_the_plugin_hands_over_what_the_script_says(tmp_path: Path) -> None:
    """Behind the user's words and a tool's result, never to a subagent, and never where it would be thrown away."""
    base = tmp_path / "my project" / ".opencode"
    plugin = base / "plugins" / "gitmem.mjs"
    plugin.parent.mkdir(parents=True)
    plugin.write_text(installed_content("opencode.js"))
    (base / "hooks").mkdir()
    script = base / "hooks" / "signal-received.sh"
    script.write_text(SCRIPT)
    calls = tmp_path / "calls.mjs"
    calls.write_text(CALLS)

    done = subprocess.run(
        [str(NODE), str(calls), str(plugin)],
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    told = ["hello\n\nsaid at chat.message", "a file", "result\n\nsaid at tool.execute.after"]
    assert answer["said"] == [told, ["hello", "a file", "result"], told]
    assert answer["content"] == {"content": []}
    assert answer["env"] == {"OPENCODE_SESSION_ID": "ses_main"}
    asked = [line.split(" ", 2) for line in script.with_suffix(".sh.log").read_text().splitlines()]
    assert [event for event, _, _ in asked] == [
        "session.created", "chat.message", "tool.execute.after", "chat.message", "tool.execute.after", "session.deleted",
    ]  # fmt: skip
    assert {session for _, session, _ in asked} == {"ses_main"}
    assert json.loads(asked[0][2]) == {"session_id": "ses_main", "cwd": str(tmp_path), "source": "startup"}
    assert json.loads(asked[1][2])["prompt"] == "hello"


EDITS = """
const { Gitmem } = await import(process.argv[2])
const hooks = await Gitmem({ directory: process.cwd() })
const created = (info) => hooks.event({ event: { type: "session.created", properties: { info } } })
await created({ id: "ses_child", parentID: "ses_main" })
const said = []
for (const [tool, filePath, sessionID] of [["write", "free", "ses_main"], ["edit", "claimed", "ses_child"], ["edit", "blocked", "ses_main"],
                                           ["read", "claimed", "ses_main"]]) {
  const callID = tool + filePath
  const output = { title: "", output: "result", metadata: {} }
  try {
    await hooks["tool.execute.before"]({ tool, sessionID, callID }, { args: { filePath } })
    await hooks["tool.execute.after"]({ tool, sessionID, callID, args: { filePath } }, output)
    said.push(output.output)
  } catch (error) {
    said.push("refused: " + error.message)
  }
}
console.log(JSON.stringify(said))
"""
EDIT_SCRIPT = """#!/bin/sh
[ "$1" = tool.execute.before ] || exit 0
case $OPENCODE_SESSION_ID$(cat) in
  ses_main*claimed* | ses_main*child*) echo '{"context": "somebody claims it"}' ;;
  *blocked*) echo '{"refused": "not now"}' ;;
esac
"""


@pytest.mark.skipif(NODE is None, reason="there is no node")
def test_the_plugin_warns_with_the_result_of_an_edit_or_refuses_it(tmp_path: Path) -> None:
    """Other tools are never asked about; a subagent's edit is its parent's."""
    base = tmp_path / ".opencode"
    plugin = base / "plugins" / "gitmem.mjs"
    plugin.parent.mkdir(parents=True)
    plugin.write_text(installed_content("opencode.js"))
    (base / "hooks").mkdir()
    (base / "hooks" / "signal-received.sh").write_text(EDIT_SCRIPT)
    calls = tmp_path / "calls.mjs"
    calls.write_text(EDITS)

    done = subprocess.run(
        [str(NODE), str(calls), str(plugin)], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )

    assert json.loads(done.stdout) == [
        "result",
        "result\n\nsomebody claims it",
        "refused: not now",
        "result",
    ], done


WAKES = """
const { connect } = await import("node:net")
const { join } = await import("node:path")
const prompts = []
const client = { session: { promptAsync: async (asked) => prompts.push([asked.path.id, asked.body.parts[0].text]) } }
const { Gitmem } = await import(process.argv[2])
const hooks = await Gitmem({ directory: process.cwd(), client })
await Gitmem({ directory: "/", client })
const path = join(process.env.XDG_STATE_HOME, "gitmem", "doors", `opencode-${process.pid}.sock`)
const tell = (said) => new Promise((resolve) => {
  let answer = ""
  const line = connect(path, () => line.write(said))
  line.on("data", (part) => (answer += part))
  line.on("error", () => {})
  line.on("close", () => resolve(answer.trim()))
})
const wake = (session, text) => tell(JSON.stringify({ session, text }) + "\\n")
const ask = (text) => hooks["chat.message"]({ sessionID: "ses_main" }, { parts: [{ type: "text", text }] })
const idle = () => hooks.event({ event: { type: "session.idle", properties: { sessionID: "ses_main" } } })
const answers = [await wake("ses_main", "before")]
await ask("hello")
answers.push(await wake("ses_main", "while busy"))
const busy = prompts.length
await idle()
answers.push(await wake("ses_main", "while idle"))
await ask("shown")
answers.push(await wake("ses_main", "dropped"))
await hooks["tool.execute.after"]({ tool: "bash", callID: "1", sessionID: "ses_main" }, { output: "result" })
await idle()
answers.push(await wake("ses_other", "x"), await tell("garbage\\n"), await tell("[]\\n"), await tell("x".repeat(100000)))
await hooks.event({ event: { type: "session.deleted", properties: { info: { id: "ses_main" } } } })
answers.push(await wake("ses_main", "after"))
console.log(JSON.stringify({ answers, busy, prompts }))
"""


@pytest.mark.skipif(NODE is None, reason="there is no node")
def test_the_plugin_wakes_its_sessions(tmp_path: Path) -> None:
    """An idle one at once, a busy one after its turn, unless something was shown to it; nobody else."""
    plugin = tmp_path / ".opencode" / "plugins" / "gitmem.mjs"
    plugin.parent.mkdir(parents=True)
    plugin.write_text(installed_content("opencode.js"))
    (tmp_path / ".opencode" / "hooks").mkdir()
    (tmp_path / ".opencode" / "hooks" / "signal-received.sh").write_text(SCRIPT.replace("| chat.message", ""))
    calls = tmp_path / "calls.mjs"
    calls.write_text(WAKES)

    with tempfile.TemporaryDirectory(prefix="gm-") as state:
        env = {**os.environ, "XDG_STATE_HOME": state}
        done = subprocess.run(
            [str(NODE), str(calls), str(plugin)],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
        )

    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["answers"] == [
        "unknown",
        "woken",
        "woken",
        "woken",
        "unknown",
        "failed",
        "unknown",
        "",
        "unknown",
    ]
    assert answer["busy"] == 0
    assert answer["prompts"] == [["ses_main", "while busy"], ["ses_main", "while idle"]]
