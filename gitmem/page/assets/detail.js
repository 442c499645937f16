"use strict";
/* What a click or Enter opens: a whole thread, a task, a claim or a commit, in one dialog that Escape closes. */
(() => {
  const page = window.gitmemPage;
  const { el, cut, badge, link, count } = page;
  const { waiting, waited, until, lease, unit, nodeKind, nodeState, name, names, whom, threadState, taskState, claimState, facts, opens, id, text, stands, mismatch, threadTitle, reference, listed, passing, contest, wait } = page.words;
  const time = (ms) => page.time(ms, true);
  const WINDOW = 150; // signals of a thread that are shown at a time
  const dialog = () => document.getElementById("detail");
  const trail = []; // what was open before, for Back
  let shown = null;

  const agentRow = (agent) => agent && name(agent);
  const signal = (each, here) => {
    const receipts = Map.groupBy ? Map.groupBy(each.receipts ?? [], ([, how]) => how) : new Map([["received", each.receipts ?? []]]);
    const owed = page.model.owed.get(each.id) ?? [];
    return el("li", { class: `signal ${page.intentOf(each)}${here ? " here" : ""}`, tabindex: "-1", "data-at": page.model.order.get(each.id) },
      el("p", {}, badge(each.intent, page.intentOf(each)), " ", el("b", {}, name(each.from)), " to ", ...whom(each), " ", el("span", { class: "quiet" }, time(each.at)), each.unsigned ? [" ", badge("unsigned", "warn")] : ""),
      text(each),
      el("p", { class: "quiet" },
        each.reply ? ["answers ", page.model.signal.has(each.reply)
          ? link(cut(page.model.signal.get(each.reply).text, 50) || "a signal", () => goTo(page.model.signal.get(each.reply)))
          : "a signal that is not on this page", " · "] .flat() : "",
        each.ack ? "asks for a confirmation · " : "",
        ...[...receipts].flatMap(([how, rows]) => [`${how === "acked" ? "confirmed" : how}: `, ...names(rows.slice(0, 20).map(([agent]) => agent)), rows.length > 20 ? ` and ${rows.length - 20} more` : "", " · "]),
        receipts.size ? "" : each.to.length ? "no receipt · " : "",
        each.task ? [page.model.task.has(each.task) ? opens("task", each.task, "task") : "task", " ", id(each.task), " · "] : "",
        id(each.id)),
      ...owed.slice(0, 30).map((row) => el("div", { class: "ways" }, badge("waiting", "bad"), el("span", {}, ...wait(row)), ...(page.ways(row) ?? []))),
      page.reply(each),
      ...(page.model.blocking.get(each.id) ?? []).map(({ gate, why }) => el("p", {}, badge("gate", "bad"), " ", name(gate.agent), ` cannot pass the gate of ${gate.wu}: this is ${why}`)),
      ...(page.model.passedSignal.get(each.id) ?? []).slice(0, 30).map((row) => el("p", {}, badge("passed", "warn"), " ", ...passing(row), ": ", opens("passed", row.id, cut(row.reason, 120) || "(no reason)"))));
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

  /** The work unit of the task that something is part of, else its own. */
  const mainUnit = (row) => page.unitsOf(page.model, row).toReversed().find(Boolean);
  const ofUnit = (wu, but) => {
    if (!wu) return [];
    const { data, thread, inThread } = page.model;
    const threads = [...thread.values()].filter((each) => each.id !== but && (each.wu ?? inThread.get(each.id)?.[0].wu) === wu).slice(0, 30);
    const rows = (title, all, row) => (all.length ? [el("h3", {}, title), el("ul", {}, all.slice(0, 30).map(row))] : []);
    return [
      ...rows(`Threads of ${wu}`, threads, (each) => el("li", {}, opens("thread", each.id, cut(threadTitle(each), 90) || each.id), " ", threadState(each))),
      ...rows(`Tasks of ${wu}`, data.tasks.filter((each) => each.wu === wu && each.id !== but), (each) => el("li", {}, opens("task", each.id, cut(each.text, 90) || each.id), " ", taskState(each), mismatch(each))),
      ...rows(`Memory of ${wu}`, data.nodes.filter((each) => each.wu === wu), (each) => el("li", {}, opens("node", each.id, cut(each.text, 90) || each.id), " ", badge(nodeKind(each)), ...nodeState(each))),
      ...rows(`Commits of ${wu}`, data.commits.filter((each) => page.unitsOf(page.model, each).includes(wu) && each.id !== but), (each) => el("li", {}, opens("commit", each.id, cut(each.subject, 90) || each.id.slice(0, 10)), " ", el("span", { class: "quiet" }, time(each.at)))),
    ];
  };

  /** What a handoff hands over, each part with a link that opens it. */
  const handed = (hands) => {
    if (!hands) return [];
    const parts = [["Tasks", "task", hands.tasks], ["Claims", "claim", hands.claims], ["Open threads", "thread", hands.threads], ["Checkpoint", "node", hands.checkpoint ? [hands.checkpoint] : []]];
    return [el("h3", {}, "Hands over"), parts.some((part) => part[2].length) ? facts(parts.map(([title, kind, ids]) => [title, ids.length && el("ul", { class: "plain" }, listed(kind, ids))])) : el("p", { class: "quiet" }, "Nothing beside its text.")];
  };
  const given = (kind, key) => (page.model.handedBy[kind].get(key) ?? []).slice(0, 20).map((task) => el("p", {}, "by ", name(task.from), ": ", opens("task", task.id, cut(task.text, 60) || task.id), " ", taskState(task)));
  const owedFor = (key) => (page.model.owedTask.get(key) ?? []).map((row) => el("div", {}, el("p", {}, ...wait(row), ", since ", time(row.since), row.what === "answer" ? `: ${row.text}` : ""), el("div", { class: "ways" }, ...(page.ways(row) ?? []))));

  /** Who has agreed to exactly this signal, and when. */
  const agreeing = (key) => {
    const rows = (page.model.replies.get(key) ?? []).filter((each) => each.intent === "AGREE").slice(0, 20);
    return rows.length ? [el("br"), "AGREE by ", ...rows.flatMap((each, at) => [at ? ", " : "", name(each.from), " ", el("span", { class: "quiet" }, time(each.at))])] : [];
  };

  /** Whether what the parties wrote is signed, and by which writers. */
  const signatures = (thread) => {
    if (thread.verified === undefined) return "";
    const writers = (thread.writers ?? []).filter(([, ids]) => ids.length);
    return el("p", { class: "signatures" }, thread.verified ? badge("verified", "good") : [badge("unverified", "warn"), " not all proposals and answers are signed"],
      ...writers.flatMap(([agent, ids], at) => [at ? ", " : thread.verified ? " signed by " : ", but those of ", name(agent), " (", id(ids.join(", ")), ")"]));
  };

  const views = {
    thread(key, focus) {
      const thread = page.model.thread.get(key);
      if (!thread) return null;
      const signals = page.model.inThread.get(key) ?? [];
      const tasks = page.model.data.tasks.filter((each) => each.thread === key);
      return [cut(threadTitle(thread) || "Thread", 160), [
        ...(thread.in_force ?? []).map((each) => el("p", {}, thread.state === "converged" ? [badge("agreed", "good"), " on what "] : "", name(each.agent), " proposed: ", ...reference("signal", each.signal), ...agreeing(each.signal))),
        thread.in_force ? el("p", { class: "quiet" }, `First proposed: ${thread.title}`) : "",
        el("p", {}, threadState(thread), ` ${count(thread.signals ?? signals.length, "signal")}`, thread.wu ? ` · ${thread.wu}` : "", thread.more ? ` · ${count(thread.more, "signal")} not on this page` : ""),
        thread.quorum ? el("p", { class: "quiet" }, thread.quorum, ...(thread.waits_for?.length ? ["; waits for ", ...names(thread.waits_for)] : [])) : "",
        stands(thread).length ? [el("h3", {}, "Where each stands"), el("ul", { class: "stands" }, stands(thread))] : "",
        signatures(thread),
        tasks.length ? [el("h3", {}, "Tasks"), el("ul", {}, tasks.slice(0, 30).map((each) => el("li", {}, opens("task", each.id, cut(each.text, 90) || each.id), " ", taskState(each), mismatch(each))))] : "",
        el("h3", {}, "Signals"), ...conversation(signals, focus), ...ofUnit(thread.wu, key),
        el("p", { class: "quiet" }, "As text: ", el("code", {}, "gitmem thread "), id(key)),
      ]];
    },
    task(key) {
      const task = page.model.task.get(key);
      if (!task) return null;
      return [cut(task.text || "Task", 160), [
        el("p", {}, taskState(task), " ", badge(task.purpose), mismatch(task), ...lease(task)),
        text(task),
        facts([["From", agentRow(task.from)], ["To", agentRow(task.to) ?? task.target], ["Held by", agentRow(task.holder)], ["Asked", time(task.at)],
          ["Taken", task.taken && [time(task.taken), ` (after ${page.duration(task.taken - task.at)})`]], ["Lease until", until(task.until)],
          ["Ended", task.ended && [time(task.ended), ` (after ${page.duration(task.ended - task.at)})`]], ["Waits", waiting(task, 50)], ["Waited for by", waited(key)],
          ["Mismatch", task.mismatch], ["Result", task.result && el("span", { class: "text", dir: "auto" }, task.result)], ["Notes", (task.notes ?? []).map((note) => el("p", {}, note))],
          ["Handed over", given("tasks", key)], ["Waiting", owedFor(key)], ["Work unit", task.wu], ["Thread", task.thread && page.model.thread.has(task.thread) && opens("thread", task.thread, "open the thread")], ["Id", id(task.id)]]),
        ...handed(task.hands), ...ofUnit(task.wu, key)]];
    },
    claim(key) {
      const claim = page.model.claim.get(key);
      if (!claim) return null;
      const against = page.model.contests.get(key) ?? [];
      const passed = page.model.passedClaim.get(key) ?? [];
      return [`Claim on ${cut(claim.paths.join(" "), 120)}`, [
        el("p", {}, claimState(claim)),
        facts([["Agent", agentRow(claim.agent)], ["Paths", el("ul", { class: "plain" }, claim.paths.map((path) => el("li", {}, el("code", {}, path))))], ["Reason", claim.reason], ["Contested", against.slice(0, 20).map((each) => el("p", {}, ...contest(each)))], ["Passed", passed.slice(0, 20).map((each) => el("p", {}, ...passing(each), ": ", opens("passed", each.id, cut(each.reason, 120) || "(no reason)")))], ["Handed over", given("claims", key)],
          ["From", time(claim.start)], ["Until", claim.ended ? time(claim.until) : until(claim.until)], ["Ended", claim.ended && time(claim.ended)], ["Work unit", unit(claim)],
          ["Task", claim.task && (page.model.task.has(claim.task) ? opens("task", claim.task, cut(page.model.task.get(claim.task).text, 60)) : id(claim.task))], ["Id", id(claim.id)]]),
        ...ofUnit(mainUnit(claim), key)]];
    },
    passed(key) {
      const row = page.model.passed.get(key);
      if (!row) return null;
      return [cut(`${page.model.name(row.agent)} passed with a reason: ${row.reason}`, 160), [
        el("p", {}, badge("passed", "warn"), " ", ...passing(row)),
        facts([["Reason", el("span", { class: "text", dir: "auto" }, row.reason || "(no reason)")], ["Agent", agentRow(row.agent)], ["At", time(row.at)],
          ["Unread or unanswered", row.signals.length && el("ul", { class: "plain" }, listed("signal", row.signals))], ["Claims", row.claims.length && el("ul", { class: "plain" }, listed("claim", row.claims))],
          ["Work unit", row.wu], ["Id", id(row.id)]]),
        ...ofUnit(row.wu, key), el("p", { class: "quiet" }, "As text: ", el("code", {}, "gitmem log --audits"))]];
    },
    commit(key) {
      const commit = page.model.commit.get(key);
      if (!commit) return null;
      const session = page.model.data.sessions.find((each) => each.id === commit.session);
      const task = page.model.task.get(commit.task);
      return [cut(commit.subject || "Commit", 160), [
        facts([["Commit", id(commit.id)], ["At", time(commit.at)], ["Author", commit.author],
          ["Agent", commit.agent && [name(commit.agent), " ", commit.inferred ? badge("inferred from time and paths", "warn") : badge("recorded", "good"), commit.foreign && " as another clone says"]],
          ["Person", !commit.agent && agentRow(commit.person)], ["Session", session && [session.name, session.role ? ` as ${session.role}` : "", session.model ? ` (${session.model})` : ""]],
          ["Branches", commit.branches.join(", ")], ["Work unit", unit(commit)],
          ["Task", commit.task && (task ? opens("task", commit.task, cut(task.text, 60)) : id(commit.task))], ["Asked by", task && name(task.from)], ["Asked of", task && agentRow(task.to)], ["Held by", task && agentRow(task.holder)],
          ["Thread", task && page.model.thread.has(task.thread) && opens("thread", task.thread, "open the thread")]]),
        ...ofUnit(mainUnit(commit), key),
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
})();
