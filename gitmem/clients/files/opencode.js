// gitmem: written by gitmem setup, removed by gitmem remove
// Show signals of other agents to the model, after a tool result or after the prompt.
import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const folder = join(dirname(fileURLToPath(import.meta.url)), "..", "hooks")
const script = ["signal-received.sh", "gitmem-signal-received.sh"]
  .map((name) => join(folder, name))
  .findLast((path) => existsSync(path))
const LIMIT = 10000 // milliseconds
const EDITS = new Set(["apply_patch", "edit", "multiedit", "patch", "write"])

// Return the output of the script; "" if it fails or takes too long.
function runScript(event, directory, session, more) {
  return new Promise((resolve) => {
    if (!script) return resolve("")
    let output = ""
    const child = spawn("sh", [script, event], {
      cwd: directory,
      env: { ...process.env, OPENCODE_SESSION_ID: session },
      stdio: ["pipe", "pipe", "ignore"],
    })
    const timer = setTimeout(() => child.kill(), LIMIT)
    child.stdout.setEncoding("utf8")
    child.stdout.on("data", (part) => (output += part))
    child.stdin.on("error", () => {})
    child.on("error", () => {
      clearTimeout(timer)
      resolve("")
    })
    child.on("close", () => {
      clearTimeout(timer)
      resolve(output.trim())
    })
    child.stdin.end(JSON.stringify({ session_id: session, cwd: directory, ...more }))
  })
}

export const Gitmem = async ({ directory }) => {
  const fresh = new Set()
  const begun = new Set()
  const children = new Map() // sessions of subagents, each with its parent, whose signals it does not get
  const warnings = new Map() // by call: what the model reads after an edit

  return {
    event: async ({ event }) => {
      const info = event.properties?.info
      if (event.type === "session.created" && info) {
        if (info.parentID) children.set(info.id, children.get(info.parentID) ?? info.parentID)
        else fresh.add(info.id)
      }
      if (event.type === "session.deleted" && info && begun.delete(info.id)) {
        await runScript("session.deleted", directory, info.id, {})
      }
    },

    "chat.message": async ({ sessionID }, { parts }) => {
      const last = parts.findLast((part) => part.type === "text" && !part.synthetic)
      if (children.has(sessionID) || !last) return
      const prompt = last.text
      const texts = []
      if (!begun.has(sessionID)) {
        begun.add(sessionID)
        const source = fresh.has(sessionID) ? "startup" : "resume"
        texts.push(await runScript("session.created", directory, sessionID, { source }))
      }
      texts.push(await runScript("chat.message", directory, sessionID, { prompt }))
      last.text = [prompt, ...texts.filter(Boolean)].join("\n\n")
    },

    dispose: async () => {
      await Promise.all([...begun].map((id) => runScript("session.deleted", directory, id, {})))
      begun.clear()
    },

    "shell.env": async ({ sessionID }, { env }) => {
      if (sessionID) env.OPENCODE_SESSION_ID = sessionID // commands of the model run as this session
    },

    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      if (!EDITS.has(tool)) return
      const found = await runScript("tool.execute.before", directory, children.get(sessionID) ?? sessionID, { args })
      if (!found) return
      const { refused, context } = JSON.parse(found)
      if (refused) throw new Error(refused)
      if (context) warnings.set(callID, context)
    },

    "tool.execute.after": async ({ sessionID, callID }, output) => {
      if (typeof output.output !== "string") return
      if (warnings.has(callID)) output.output += "\n\n" + warnings.get(callID)
      warnings.delete(callID)
      if (children.has(sessionID)) return
      const signals = await runScript("tool.execute.after", directory, sessionID, {})
      if (signals) output.output += "\n\n" + signals
    },
  }
}
