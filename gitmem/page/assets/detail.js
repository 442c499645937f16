"use strict";
/* What a click or Enter opens: a whole thread, a task, a claim or a commit, in one dialog that Escape closes. */
(() => {
  const page = window.gitmemPage;
  const { el, time, ago, cut, badge, link, count, table } = page;
  const WINDOW = 150; // signals of a thread that are shown at a time
  const dialog = () => document.getElementById("detail");
  const trail = []; // what was open before, for Back
  let shown = null;

  const STATES = { converged: ["agreed by all", "good"], rejected: ["rejected", "bad"], countered: ["countered", "warn"],
    open: ["open", "warn"], ambiguous: ["ambiguous", "bad"], notice: ["notice", ""], large: ["too large to evaluate", "warn"] };
  const STANDS = { agree: ["agrees", "good"], reject: ["rejects", "bad"], counter: ["counters", "warn"],
    stale: ["agreed to an earlier proposal", "warn"], pending: ["has not answered", "warn"] };
  const CLAIMS = { held: "good", contested: "bad", behind: "warn", "perhaps renewed": "warn" };
  const has = (all, key) => (Object.hasOwn(all, key) ? all[key] : [String(key), ""]);
  const taskState = (task) => badge(task.state_text ?? task.state, task.open ? "warn" : /fail|reject|cancel|refus|expire/u.test(task.state) ? "bad" : "good");
  const threadState = (thread) => { // nobody owes an answer to the request for a task once it is taken: its state says more
    const task = thread.state === "open" && page.model.taskOf.get(thread.id);
    return task ? taskState(task) : badge(...has(STATES, thread.state));
  };
  const claimState = (claim) => badge(claim.state, Object.hasOwn(CLAIMS, claim.state) ? CLAIMS[claim.state] : "");
  const name = (id) => el("bdi", {}, page.model.name(id));
  const names = (ids) => ids.flatMap((id, place) => (place ? [", ", name(id)] : [name(id)]));
  const whom = (signal) => (signal.to.length ? names(signal.to.slice(0, 12)).concat(signal.to.length > 12 ? ` and ${signal.to.length - 12} more` : "") : ["everyone"]);
  const text = (row) => {
    const left = row.cut ? el("span", { class: "quiet" }, ` … ${count(row.cut, "character")} left out; the whole: gitmem thread`) : "";
    return el("p", { class: "text", dir: "auto" }, row.text || "(no text)", left);
  };
  const stands = (thread) => {
    const task = page.model.taskOf.get(thread.id);
    const took = (agent) => task && (task.taken || task.ended) && (agent === task.to || agent === task.holder);
    return (thread.stands ?? []).map(([agent, how]) =>
      el("li", {}, name(agent), " ", how === "pending" && took(agent) ? badge(agent === task.holder ? "has taken the task" : "was asked first", "") : badge(...has(STANDS, how))));
  };
  const facts = (pairs) =>
    el("dl", { class: "facts" }, pairs.flatMap(([head, value]) =>
      value === undefined || value === null || value === "" || (Array.isArray(value) && !value.length)
        ? [] : [el("dt", {}, head), el("dd", {}, ...[value].flat())]));
  const id = (value) => value && el("span", { class: "id" }, value);
  const opens = (kind, key, words) => link(words, () => page.open(kind, key));
  const agentRow = (agent) => agent && name(agent);

  const signal = (each, here) => {
    const receipts = Map.groupBy ? Map.groupBy(each.receipts ?? [], ([, how]) => how) : new Map([["received", each.receipts ?? []]]);
    const owed = page.model.owed.get(each.id) ?? [];
    return el("li", { class: `signal ${page.intentOf(each)}${here ? " here" : ""}`, tabindex: "-1", "data-at": page.model.order.get(each.id) },
      el("p", {}, badge(each.intent, page.intentOf(each)), " ", el("b", {}, name(each.from)), " to ", ...whom(each), " ", el("span", { class: "quiet" }, time(each.at))),
      text(each),
      el("p", { class: "quiet" },
        each.reply ? ["answers ", page.model.signal.has(each.reply)
          ? link(cut(page.model.signal.get(each.reply).text, 50) || "a signal", () => goTo(page.model.signal.get(each.reply)))
          : "a signal that is not on this page", " · "] .flat() : "",
        each.ack ? "asks for an acknowledgement · " : "",
        ...[...receipts].flatMap(([how, rows]) => [`${how}: `, ...names(rows.slice(0, 20).map(([agent]) => agent)), rows.length > 20 ? ` and ${rows.length - 20} more` : "", " · "]),
        receipts.size ? "" : each.to.length ? "no receipt · " : "",
        each.task ? [page.model.task.has(each.task) ? opens("task", each.task, "task") : "task", " ", id(each.task), " · "] : "",
        id(each.id)),
      owed.length ? el("p", {}, badge("owed", "bad"), " ", ...names(owed.map((row) => row.agent)), " has not answered") : "");
  };
  const goTo = (target) => {
    if (shown?.kind === "thread" && shown.id === target.thread) {
      const found = dialog().querySelector(`[data-at="${page.model.order.get(target.id)}"]`);
      if (found) return found.focus();
    }
    return page.open("thread", target.thread, target.id);
  };

  /** The signals of a thread: a window around the one that was chosen, and buttons for more on both sides. */
  const conversation = (signals, focus) => {
    const at = Math.max(0, signals.findIndex((each) => each.id === focus));
    let from = Math.max(0, Math.min(at - WINDOW / 2, signals.length - WINDOW));
    let to = Math.min(signals.length, from + WINDOW);
    const list = el("ol", { class: "plain" }, signals.slice(from, to).map((each) => signal(each, each.id === focus)));
    const earlier = el("button", { type: "button", class: "more" });
    const later = el("button", { type: "button", class: "more" });
    const label = () => {
      earlier.textContent = `Show earlier (${page.number.format(from)})`;
      later.textContent = `Show later (${page.number.format(signals.length - to)})`;
      earlier.hidden = !from;
      later.hidden = to === signals.length;
    };
    earlier.addEventListener("click", () => {
      const next = Math.max(0, from - WINDOW);
      list.prepend(...signals.slice(next, from).map((each) => signal(each)));
      from = next;
      label();
      list.firstChild.focus();
    });
    later.addEventListener("click", () => {
      const next = Math.min(signals.length, to + WINDOW);
      const fresh = signals.slice(to, next).map((each) => signal(each));
      list.append(...fresh);
      to = next;
      label();
      fresh[0].focus();
    });
    label();
    return [earlier, list, later];
  };

  const ofUnit = (wu, but) => {
    if (!wu) return [];
    const { data, thread, inThread } = page.model;
    const threads = [...thread.values()].filter((each) => each.id !== but && (each.wu ?? inThread.get(each.id)?.[0].wu) === wu).slice(0, 30);
    const rows = (title, all, row) => (all.length ? [el("h3", {}, title), el("ul", {}, all.slice(0, 30).map(row))] : []);
    return [
      ...rows(`Threads of ${wu}`, threads, (each) => el("li", {}, opens("thread", each.id, cut(each.title, 90) || each.id), " ", threadState(each))),
      ...rows(`Tasks of ${wu}`, data.tasks.filter((each) => each.wu === wu && each.id !== but), (each) => el("li", {}, opens("task", each.id, cut(each.text, 90) || each.id), " ", taskState(each))),
      ...rows(`Memory of ${wu}`, data.nodes.filter((each) => each.wu === wu), (each) => el("li", {}, opens("node", each.id, cut(each.text, 90) || each.id), " ", badge(each.type))),
      ...rows(`Commits of ${wu}`, data.commits.filter((each) => each.wu === wu && each.id !== but), (each) => el("li", {}, opens("commit", each.id, cut(each.subject, 90) || each.id.slice(0, 10)), " ", el("span", { class: "quiet" }, time(each.at)))),
    ];
  };

  const views = {
    thread(key, focus) {
      const thread = page.model.thread.get(key);
      if (!thread) return null;
      const signals = page.model.inThread.get(key) ?? [];
      const tasks = page.model.data.tasks.filter((each) => each.thread === key);
      return [cut(thread.title || "Thread", 160), [
        el("p", {}, threadState(thread), ` ${count(thread.signals ?? signals.length, "signal")}`, thread.wu ? ` · ${thread.wu}` : "", thread.more ? ` · ${count(thread.more, "signal")} not on this page` : ""),
        stands(thread).length ? [el("h3", {}, "Where each stands"), el("ul", { class: "stands" }, stands(thread))] : "",
        tasks.length ? [el("h3", {}, "Tasks"), el("ul", {}, tasks.slice(0, 30).map((each) => el("li", {}, opens("task", each.id, cut(each.text, 90) || each.id), " ", taskState(each))))] : "",
        el("h3", {}, "Signals"), ...conversation(signals, focus), ...ofUnit(thread.wu, key),
        el("p", { class: "quiet" }, "As text: ", el("code", {}, "gitmem thread "), id(key)),
      ]];
    },
    task(key) {
      const task = page.model.task.get(key);
      if (!task) return null;
      const blockers = (task.blocked_by ?? []).flatMap((each, place) => [place ? ", " : "", ...(page.model.task.has(each) ? [opens("task", each, cut(page.model.task.get(each).text, 50) || each), " ", taskState(page.model.task.get(each))] : [id(each)])]);
      return [cut(task.text || "Task", 160), [
        el("p", {}, taskState(task), " ", badge(task.purpose), task.mismatch ? [" ", badge("mismatch", "bad")] : ""),
        text(task),
        facts([["From", agentRow(task.from)], ["To", agentRow(task.to) ?? task.target], ["Held by", agentRow(task.holder)], ["Asked", time(task.at)],
          ["Taken", task.taken && [time(task.taken), ` (after ${page.duration(task.taken - task.at)})`]], ["Until", task.until && time(task.until)],
          ["Ended", task.ended && [time(task.ended), ` (after ${page.duration(task.ended - task.at)})`]], ["Blocked by", blockers],
          ["Mismatch", task.mismatch], ["Result", task.result && el("span", { class: "text", dir: "auto" }, task.result)], ["Notes", (task.notes ?? []).map((note) => el("p", {}, note))],
          ["Work unit", task.wu], ["Thread", task.thread && page.model.thread.has(task.thread) && opens("thread", task.thread, "open the thread")], ["Id", id(task.id)]]),
        ...ofUnit(task.wu, key)]];
    },
    claim(key) {
      const claim = page.model.claim.get(key);
      if (!claim) return null;
      const against = (claim.against ?? []).flatMap((each, place) => {
        const other = page.model.claim.get(each);
        return [place ? ", " : "", other ? link(`${page.model.name(other.agent)}: ${cut(other.paths.join(" "), 60)}`, () => page.open("claim", each)) : id(each)];
      });
      return [`Claim on ${cut(claim.paths.join(" "), 120)}`, [
        el("p", {}, claimState(claim)),
        facts([["Agent", agentRow(claim.agent)], ["Paths", el("ul", { class: "plain" }, claim.paths.map((path) => el("li", {}, el("code", {}, path))))], ["Reason", claim.reason], ["Against", against],
          ["From", time(claim.start)], ["Until", time(claim.until)], ["Ended", claim.ended && time(claim.ended)], ["Work unit", claim.wu],
          ["Task", claim.task && (page.model.task.has(claim.task) ? opens("task", claim.task, cut(page.model.task.get(claim.task).text, 60)) : id(claim.task))], ["Id", id(claim.id)]]),
        ...ofUnit(claim.wu, key)]];
    },
    commit(key) {
      const commit = page.model.commit.get(key);
      if (!commit) return null;
      const session = page.model.data.sessions.find((each) => each.id === commit.session);
      const task = page.model.task.get(commit.task);
      return [cut(commit.subject || "Commit", 160), [
        facts([["Commit", id(commit.id)], ["At", time(commit.at)], ["Author", commit.author],
          ["Agent", commit.agent && [name(commit.agent), " ", commit.inferred ? badge("inferred from time and paths", "warn") : badge("recorded", "good")]],
          ["Session", session && [session.name, session.role ? ` as ${session.role}` : "", session.model ? ` (${session.model})` : ""]],
          ["Branches", commit.branches.join(", ")], ["Work unit", commit.wu],
          ["Task", commit.task && (task ? opens("task", commit.task, cut(task.text, 60)) : id(commit.task))], ["Asked by", task && name(task.from)],
          ["Thread", task && page.model.thread.has(task.thread) && opens("thread", task.thread, "open the thread")]]),
        ...ofUnit(commit.wu, key),
        el("p", { class: "quiet" }, "The whole reason: ", el("code", {}, `gitmem why ${/^[0-9a-f]+$/u.test(commit.id) ? commit.id.slice(0, 12) : "COMMIT"}`))]];
    },
  };

  const fill = (kind, key, focus) => {
    const made = Object.hasOwn(views, kind) && views[kind](key, focus);
    if (!made) return false;
    const [title, parts] = made;
    const back = trail.length ? el("button", { type: "button", onclick: () => { const last = trail.pop(); shown = null; page.open(last.kind, last.id, last.focus); } }, "Back") : "";
    dialog().replaceChildren(
      el("div", { class: "head" }, el("h2", { id: "detail-title", tabindex: "-1", dir: "auto" }, title), back, el("button", { type: "button", onclick: () => dialog().close() }, "Close")),
      el("div", { class: "inner" }, ...parts.flat()));
    shown = { kind, id: key, focus };
    return true;
  };

  /** Open a thread (at a signal), a task, a claim, a commit or a node. */
  page.open = (kind, key, focus) => {
    if (kind === "node") {
      dialog().close();
      page.select("memory");
      return page.sections.memory.show(key, true);
    }
    const before = shown && dialog().open && (shown.kind !== kind || shown.id !== key) ? shown : null;
    if (before) trail.push(before);
    if (!fill(kind, key, focus)) {
      if (before) trail.pop();
      return undefined;
    }
    page.sections.timeline.leave();
    if (!dialog().open) dialog().showModal();
    dialog().scrollTop = 0;
    const here = dialog().querySelector(".signal.here");
    if (here) here.focus();
    else dialog().querySelector("h2").focus();
    return undefined;
  };
  /** Show what changed in the open dialog without moving the reader. */
  page.refreshDetail = () => {
    if (!shown || !dialog().open) return;
    const [top, at] = [dialog().scrollTop, document.activeElement?.dataset?.at];
    if (!fill(shown.kind, shown.id, shown.focus)) return;
    dialog().scrollTop = top;
    const again = at !== undefined && dialog().querySelector(`[data-at="${Number(at)}"]`);
    (again || dialog().querySelector("h2")).focus({ preventScroll: true });
  };
  page.closed = () => {
    trail.length = 0;
    shown = null;
  };

  const latest = (row) => time(page.model.lastAt(row));
  /** The tables that say the same as the timeline. */
  page.tables = {
    threads: (rows, options) => table("Threads", [
      ["Thread", (row) => opens("thread", row.id, cut(row.title, 140) || row.id), "wide"],
      ["State", (row) => threadState(row)],
      ["Where each stands", (row) => el("ul", { class: "stands" }, stands(row).slice(0, 8))],
      ["Work unit", (row) => row.wu ?? "–"],
      ["Signals", (row) => page.number.format(row.signals ?? 0), "num"],
      ["Last", latest, "nowrap"]], rows, options),
    signals: (rows, options) => table("Signals", [
      ["Time", (row) => time(row.at), "nowrap"], ["Intent", (row) => badge(row.intent, page.intentOf(row))],
      ["From", (row) => name(row.from)], ["To", (row) => whom(row)],
      ["Text", (row) => link(cut(row.text, 160) || "(no text)", () => page.open("thread", row.thread, row.id)), "wide"],
      ["Work unit", (row) => row.wu ?? "–"]], rows, options),
    tasks: (rows, options) => table("Tasks", [
      ["Task", (row) => opens("task", row.id, cut(row.text, 120) || row.id), "wide"], ["State", taskState], ["Kind", (row) => row.purpose],
      ["From", (row) => name(row.from)], ["For", (row) => (row.holder ?? row.to ? name(row.holder ?? row.to) : row.target ?? "anyone")],
      ["Waits for", (row) => (row.blocked_by?.length ? count(row.blocked_by.length, "task") : "–")], ["Work unit", (row) => row.wu ?? "–"], ["Asked", (row) => time(row.at), "nowrap"]], rows, options),
    claims: (rows, options) => table("Claims", [
      ["Paths", (row) => opens("claim", row.id, cut(row.paths.join(" "), 120) || row.id), "wide"], ["State", claimState], ["Agent", (row) => name(row.agent)],
      ["Reason", (row) => cut(row.reason, 120) || "–"], ["From", (row) => time(row.start), "nowrap"], ["Until", (row) => time(row.ended ?? row.until), "nowrap"]], rows, options),
    commits: (rows, options) => table("Commits", [
      ["Commit", (row) => opens("commit", row.id, cut(row.subject, 120) || row.id.slice(0, 10)), "wide"],
      ["Id", (row) => id(row.id.slice(0, 10))],
      ["Agent", (row) => (row.agent ? [name(row.agent), row.inferred ? " (inferred)" : ""] : "–")], ["Author", (row) => row.author],
      ["Branches", (row) => cut(row.branches.join(", "), 60)], ["Work unit", (row) => row.wu ?? "–"], ["At", (row) => time(row.at), "nowrap"]], rows, options),
    sessions: (rows, options) => table("Sessions", [
      ["Agent", (row) => name(row.agent)], ["Session", (row) => row.name], ["Status", (row) => badge(row.status ?? (row.live ? "live" : "ended"), row.live ? "good" : "")],
      ["Work unit", (row) => row.wu ?? "–"], ["Role", (row) => row.role ?? "–"], ["Branch", (row) => row.branch ?? "–"], ["Model", (row) => row.model ?? "–"],
      ["From", (row) => time(row.start), "nowrap"], ["Until", (row) => (row.end ? time(row.end) : "open"), "nowrap"]], rows, options),
  };
  Object.assign(page, { words: { name, names, whom, threadState, taskState, claimState, facts, opens, id, text, stands } });
})();
