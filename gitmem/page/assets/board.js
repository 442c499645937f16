"use strict";
/* The board: what is open now, below who waits for whom. */
(() => {
  const page = window.gitmemPage;
  const { el, ago, since, cut, badge, count, table } = page;
  const { name, opens, taskState, claimState, mismatch, reference, passing, contest, waiting, lease } = page.words;

  /** Say that a list is empty: of all that is on the page, or only of what the filters leave of so many. */
  const nothing = (all, empty) => {
    if (page.narrowing() && all) return `Nothing for ${page.narrowing()} (${page.number.format(all)} without the filter).`;
    return Object.keys(page.data.filters ?? {}).length ? "Nothing within what this page was limited to when it was written." : empty;
  };
  let empties = [];
  /** A list with a heading, of so many rows without the filters; `note` says what they are. What is empty is one line of the last card. */
  const card = (title, rows, all, empty, note) => {
    if (!rows.length) empties.push(el("p", {}, el("b", {}, title), " ", el("span", { class: "quiet" }, nothing(all, empty))));
    return rows.length && el("div", { class: "card" }, el("h2", {}, title, el("span", { class: "quiet" }, ` ${page.number.format(rows.length)}${rows.length < all ? ` of ${page.number.format(all)}` : ""}`)),
      note ? el("p", { class: "quiet" }, note) : "", list(rows));
  };
  const list = (rows, first = 12) => {
    const made = el("ul", {}, rows.slice(0, first).map((row) => row()));
    if (rows.length <= first) return made;
    const more = el("button", { type: "button", class: "more", onclick: () => { made.append(...rows.slice(first).map((row) => row())); more.remove(); } }, `Show ${page.number.format(rows.length - first)} more`);
    return [made, more];
  };
  const agentKept = (id) => !page.filter.agent || page.filter.agent === id;

  const live = (model) => {
    const { board } = model.data; // what an agent has not read and owes is the same whatever the filters are about
    const unread = new Map(board.unread.map((each) => [each.agent, each.count]));
    const debts = new Map();
    for (const { owes } of board.waits) debts.set(owes, (debts.get(owes) ?? 0) + 1);
    const gate = (agent, session) => {
      const closed = model.closed.get(agent.id) ?? [];
      return closed.length ? [badge("closed", "bad"), ` ${cut(closed.map((each) => each.wu).join(", "), 60)}`] : session?.wu && !model.data.omitted?.gates && ["live", "idle"].includes(session.status) ? "open" : "–";
    };
    const sessions = page.kept.sessions(model);
    const lastOf = new Map();
    for (const each of sessions) {
      const before = lastOf.get(each.agent);
      if (!before || (each.live && !before.live) || (each.live === before.live && (each.last ?? each.start) > (before.last ?? before.start))) lastOf.set(each.agent, each);
    }
    const rows = model.data.agents
      .filter((each) => agentKept(each.id) && (lastOf.has(each.id) || (!page.filter.text && !page.filter.wu)))
      .map((agent) => ({ agent, session: lastOf.get(agent.id) }))
      .sort((a, b) => Number(b.agent.live) - Number(a.agent.live) || b.agent.last - a.agent.last);
    return el("div", { class: "card full" }, el("h2", {}, "Who is here"),
      table("Agents and people", [
        ["Agent", (row) => [el("b", {}, name(row.agent.id)), row.agent.person ? " (person)" : ""]],
        ["Status", ({ agent, session }) => badge(agent.live ? "live" : session?.status ?? "gone", agent.live ? "good" : "")],
        ["On", ({ session }) => [session?.wu ?? "–", session?.activity ? `: ${cut(session.activity, 80)}` : ""]],
        ["Role", ({ agent, session }) => session?.role ?? agent.role ?? "–"], ["Branch", ({ session }) => session?.branch ?? "–"],
        ["Client, model", ({ agent, session }) => cut([agent.client, session?.model].filter(Boolean).join(", "), 60) || "–"],
        ["Last seen", ({ agent }) => ago(agent.last), "nowrap"],
        ["Unread", ({ agent }) => page.number.format(unread.get(agent.id) ?? 0), "num"], ["Owes", ({ agent }) => page.number.format(debts.get(agent.id) ?? 0), "num"], ["Gate", ({ agent, session }) => gate(agent, session)],
      ], rows, { first: 15, hideCaption: true, empty: nothing(model.data.agents.length, "Nobody has been here.") }));
  };

  const taskRow = (task) => () =>
    el("li", {}, opens("task", task.id, cut(task.text, 110) || task.id), mismatch(task), el("br"), el("span", { class: "quiet" },
      `${task.purpose}: from `, name(task.from), task.holder ? ", held by " : " to ", task.holder ?? task.to ? name(task.holder ?? task.to) : task.target ?? "anyone", ` · ${ago(task.at)}`, task.wu ? ` · ${task.wu}` : ""),
    ...lease(task), task.blocked_by?.length ? el("div", {}, badge("blocked", "warn")) : "", ...waiting(task));

  const tasks = (model) => {
    const kept = page.kept.tasks(model);
    const open = new Set(model.data.board.open_tasks);
    const byState = new Map();
    for (const task of kept) if (task.open ?? open.has(task.id)) {
      const state = task.state_text ?? task.state;
      byState.set(state, [...(byState.get(state) ?? []), task]);
    }
    const done = kept.filter((task) => !(task.open ?? open.has(task.id)));
    return el("div", { class: "card full" }, el("h2", {}, "Open tasks by state"),
      byState.size
        ? el("div", { class: "columns" }, [...byState].map(([state, rows]) => el("div", {}, el("h3", {}, state, el("span", { class: "quiet" }, ` ${rows.length}`)), list(rows.map((row) => taskRow(row))))))
        : el("p", { class: "quiet" }, nothing(open.size, "No open task.")),
      done.length ? el("details", { class: "fold" }, el("summary", {}, `Tasks that ended (${page.number.format(done.length)})`), page.tables.tasks(done, { first: 10, hideCaption: true })) : "");
  };

  /** The work units of unread signals: the gate of each counts only its own. */
  const units = (row) => {
    const of = Object.entries(row.units);
    return of.length > 1 || (of.length && of[0][0]) ? ` (${of.slice(0, 8).map(([unit, n]) => `${page.number.format(n)} on ${unit || "no work unit"}`).join(", ")}${of.length > 8 ? ", …" : ""})` : "";
  };

  /** Why a gate is closed, and what opens it. */
  const blocker = (model, each) => {
    const signal = model.signal.get(each.signal);
    const asks = signal?.ack || signal?.intent === "PROPOSE";
    return el("li", {}, badge(each.why, "bad"), " from ", name(each.from), ", ", since(each.at), ": ", ...reference("signal", each.signal),
      el("span", { class: "quiet" }, each.why === "unanswered" ? " – needs AGREE or REJECT" : asks ? " – to be read, then AGREE or REJECT" : " – to be read"));
  };
  const gates = (model) => page.kept.gates(model).map((gate) => () => {
    const list_ = list(gate.blockers.map((each) => () => blocker(model, each)), 5);
    return el("li", {}, el("b", {}, name(gate.agent)), ` cannot pass the gate of ${gate.wu}: ${[[gate.unread, "unread"], [gate.unanswered, "unanswered"]].filter(([n]) => n).map(([n, why]) => `${page.number.format(n)} ${why}`).join(", ")}`,
      list_, gate.more ? el("p", { class: "quiet" }, `${count(gate.more, "signal")} more: `, el("code", {}, "gitmem gate")) : "");
  });
  const passed = (model) => page.kept.passed(model).toReversed().map((row) => () =>
    el("li", {}, ...passing(row), ", ", since(row.at), el("br"), opens("passed", row.id, cut(row.reason, 200) || "(no reason)")));

  const build = (section) => section.append(el("div", { class: "cards" }));
  const show = () => {
    const { model } = page;
    const claims = page.kept.claims(model);
    const isHeld = (each) => ["held", "perhaps renewed"].includes(each.state) && !model.contests.has(each.id);
    const claimRow = (claim) => () => el("li", {}, opens("claim", claim.id, cut(claim.paths.join(" "), 100) || claim.id), " ", claimState(claim), el("br"),
      el("span", { class: "quiet" }, name(claim.agent), claim.reason ? `: ${cut(claim.reason, 100)}` : ""));
    const held = claims.filter((each) => isHeld(each));
    const contests = page.kept.contests(model).map((row) => () => el("li", {}, ...row.sides.flatMap((side, at) => [at ? " and " : "", el("b", {}, name(side.agent)), model.claim.get(side.claim)?.reason ? ` (${cut(model.claim.get(side.claim).reason, 60)})` : ""]), el("br"), el("span", { class: "quiet" }, ...contest(row))));
    const mismatches = page.kept.mismatches(model).map((row) => () =>
      el("li", {}, cut(row.text, 240), row.ended ? [" ", badge("ended")] : "", el("br"), ...reference("task", row.task)));
    const overlaps = page.kept.overlaps(model);
    const { board } = model.data;
    const standing = model.data.claims.filter(isHeld).length;
    const pairs = board.contested.length;
    const unread = page.kept.unread(model).sort((a, b) => b.count - a.count);
    empties = [];
    const cards = [
      live(model),
      card("Cannot pass the gate", gates(model), board.gates.length, "Nothing closes the gate of an agent at work.", "The gate is the check before a push or the end of work: gitmem gate. Signals on the work unit that are unread, or want an answer, close it."),
      card("Contested claims", contests, board.contested.length, "No two agents claim the same paths."),
      card("Mismatches", mismatches, board.mismatches.length, "Every worker is what was asked for."),
      card("Passed with a reason", passed(model), board.passed.length, "Nobody passed a gate or a claim."),
      card("Claims that are held", held.map(claimRow), standing, pairs ? `None is held; ${count(pairs, "pair is", "pairs are")} contested.` : "No path is claimed."),
      card("Agents with unread signals", unread.map((row) => () => el("li", {}, el("b", {}, name(row.agent)), ` has ${count(row.count, "unread signal")}`, page.filter.wu ? ` on ${page.filter.wu}` : units(row))), board.unread.length, "Everybody has read everything.", `${count(unread.reduce((sum, row) => sum + row.count, 0), "signal")} to agents at work; a signal to two of them counts twice.`),
      card("Branches that overlap", overlaps.map((row) => () => el("li", {}, el("code", {}, row.branches.join(" ↔ ")), " ",
        row.conflicts === undefined ? badge("not tried") : row.conflicts ? badge("conflicts", "bad") : badge("merges", "good"), el("br"), el("span", { class: "quiet" }, cut(row.paths.join(", "), 240)))), board.overlaps.length, "No two branches change the same files."),
      empties.length && el("div", { class: "card" }, ...empties),
      tasks(model),
    ];
    document.querySelector("#board .cards").replaceChildren(...cards.filter(Boolean));
  };
  page.sections.board = { build, show };
})();
