// gitmem: written by gitmem setup, removed by gitmem remove
// Show signals of other agents to the model, after a tool result or after the prompt; gitmem wakes idle sessions by it.
import { spawn } from "node:child_process"
import { existsSync, mkdirSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { homedir } from "node:os"
import { dirname, isAbsolute, join } from "node:path"
import { fileURLToPath } from "node:url"

const folder = join(dirname(fileURLToPath(import.meta.url)), "..", "hooks")
const script = ["signal-received.sh", "gitmem-signal-received.sh"]
  .map((name) => join(folder, name))
  .findLast((path) => existsSync(path))
const LIMIT = 10000 // milliseconds
const MESSAGE = 4096 // characters
const ADDRESS = 103 // bytes of the path of a socket, everywhere; node cuts a longer one
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
      if (output && sessions.has(session)) sessions.get(session).later = "" // it has been shown
      resolve(output.trim())
    })
    child.stdin.end(JSON.stringify({ session_id: session, cwd: directory, ...more }))
  })
}

// The sessions of this process: how each is given a prompt, whether its agent is at work, and what to tell it after that.
const sessions = new Map()
let server

function prompt(id, text) {
  return sessions.get(id).client?.session.promptAsync({ path: { id }, body: { parts: [{ type: "text", text }] } })
}

// Let gitmem wake a session that waits for its user: it writes a line to a socket in the user's own state folder.
function listen() {
  const state = process.env.XDG_STATE_HOME ?? ""
  const folder = join(isAbsolute(state) ? state : join(homedir(), ".local", "state"), "gitmem", "doors")
  const path = join(folder, `opencode-${process.pid}.sock`)
  server = createServer((line) => {
    let said = ""
    line.setEncoding("utf8")
    line.on("error", () => {})
    line.on("data", async (part) => {
      said += part
      if (said.length > MESSAGE) return line.destroy()
      if (!said.endsWith("\n")) return
      let answer = "unknown"
      try {
        const { session, text } = JSON.parse(said)
        const known = sessions.get(session)
        if (known?.busy) known.later = String(text)
        else if (known) await prompt(session, String(text))
        if (known) answer = "woken"
      } catch {
        answer = "failed"
      }
      line.end(answer + "\n")
    })
  })
  server.on("error", () => {}) // the folder can't be written: nobody is woken
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    rmSync(path, { force: true }) // of an ended process
    if (Buffer.byteLength(path) <= ADDRESS) server.listen(path)
    server.unref()
  } catch {}
}

export const Gitmem = async ({ directory, client }) => {
  if (!server) listen()
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
        sessions.delete(info.id)
        await runScript("session.deleted", directory, info.id, {})
      }
      const ended = sessions.get(event.properties?.sessionID)
      if (event.type === "session.idle" && ended) {
        const later = ended.later
        Object.assign(ended, { busy: false, later: "" })
        if (later) await prompt(event.properties.sessionID, later)
      }
    },

    "chat.message": async ({ sessionID }, { parts }) => {
      const last = parts.findLast((part) => part.type === "text" && !part.synthetic)
      if (children.has(sessionID) || !last) return
      const prompt = last.text
      const texts = []
      sessions.set(sessionID, { client, busy: true })
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
      begun.forEach((id) => sessions.delete(id))
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
