"use strict";
/* The board: what is open now, and who waits for whom. */
(() => {
  const page = window.gitmemPage;
  const { el, ago, cut, badge, link, count, table } = page;
  const { name, opens, taskState, claimState } = page.words;

  const card = (title, rows, empty, full) =>
    el("div", { class: `card${full ? " full" : ""}` }, el("h2", {}, title, el("span", { class: "quiet" }, rows.length ? ` ${page.number.format(rows.length)}` : "")),
      rows.length ? list(rows) : el("p", { class: "quiet" }, empty));
  const list = (rows, first = 12) => {
    const made = el("ul", {}, rows.slice(0, first).map((row) => row()));
    if (rows.length <= first) return made;
    const more = el("button", { type: "button", class: "more", onclick: () => { made.append(...rows.slice(first).map((row) => row())); more.remove(); } }, `Show ${page.number.format(rows.length - first)} more`);
    return [made, more];
  };
  const agentKept = (id) => !page.filter.agent || page.filter.agent === id;
  const textKept = (...parts) => !page.filter.text || parts.some((part) => String(part ?? "").toLowerCase().includes(page.filter.text));
  const unitKept = (wu) => !page.filter.wu || page.filter.wu === wu;

  const live = (model) => {
    const unread = new Map(model.data.board.unread);
    const owes = new Map();
    for (const { agent } of model.data.board.owed) owes.set(agent, (owes.get(agent) ?? 0) + 1);
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
        ["Client", ({ agent, session }) => cut([agent.client, session?.model].filter(Boolean).join(", "), 60) || "–"],
        ["Last seen", ({ agent }) => ago(agent.last), "nowrap"],
        ["Unread", ({ agent }) => page.number.format(unread.get(agent.id) ?? 0), "num"], ["Owes", ({ agent }) => page.number.format(owes.get(agent.id) ?? 0), "num"],
      ], rows, { first: 15, hideCaption: true, empty: "Nobody has been here." }));
  };

  const taskRow = (model, task) => () =>
    el("li", {}, opens("task", task.id, cut(task.text, 110) || task.id), el("br"), el("span", { class: "quiet" },
      `${task.purpose}: `, name(task.from), " → ", task.holder ?? task.to ? name(task.holder ?? task.to) : task.target ?? "anyone", ` · ${ago(task.at)}`, task.wu ? ` · ${task.wu}` : ""),
    task.blocked_by?.length ? el("div", {}, badge("blocked", "warn"), " waits for ", ...task.blocked_by.slice(0, 8).flatMap((id, place) => [place ? ", " : "", ...waits(model, id)])) : "");
  const waits = (model, id) => {
    const other = model.task.get(id);
    if (!other) return [cut(id, 30)];
    const by = other.holder ?? other.to;
    return [opens("task", id, cut(other.text, 50) || id), by ? " of " : "", by ? name(by) : "", " ", taskState(other)];
  };

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
        ? el("div", { class: "columns" }, [...byState].map(([state, rows]) => el("div", {}, el("h3", {}, state, el("span", { class: "quiet" }, ` ${rows.length}`)), list(rows.map((row) => taskRow(model, row))))))
        : el("p", { class: "quiet" }, "No open task."),
      done.length ? el("details", { class: "fold" }, el("summary", {}, `Tasks that ended (${page.number.format(done.length)})`), page.tables.tasks(done, { first: 10, hideCaption: true })) : "");
  };

  const owed = (model) =>
    model.data.board.owed
      .filter((row) => agentKept(row.agent) && unitKept(model.signal.get(row.signal)?.wu) && textKept(row.text, model.name(row.agent)))
      .sort((a, b) => a.since - b.since)
      .map((row) => () => {
        const asker = model.signal.get(row.signal)?.from;
        return el("li", {}, el("b", {}, name(row.agent)), " owes ", asker ? ["an answer to ", name(asker)] : "an answer", `, asked ${ago(row.since)}`, el("br"),
          link(cut(row.text, 140) || "(no text)", () => page.open("thread", row.thread, row.signal)));
      });

  const build = (section) => section.append(el("div", { class: "cards" }));
  const show = () => {
    const { model } = page;
    const { board } = model.data;
    const claims = page.kept.claims(model);
    const contested = new Set(board.contested);
    const claimRow = (claim) => () => el("li", {}, opens("claim", claim.id, cut(claim.paths.join(" "), 100) || claim.id), " ", claimState(claim), el("br"),
      el("span", { class: "quiet" }, name(claim.agent), claim.reason ? `: ${cut(claim.reason, 100)}` : "",
        ...(claim.against ?? []).slice(0, 5).flatMap((id, place) => [place ? ", " : " · against ", model.claim.has(id) ? name(model.claim.get(id).agent) : cut(id, 30)])));
    const held = claims.filter((each) => ["held", "behind", "perhaps renewed"].includes(each.state) && !contested.has(each.id));
    const mismatches = board.mismatches.filter((row) => (!row.agent || agentKept(row.agent)) && textKept(row.text, row.task));
    const overlaps = board.overlaps.filter((row) => textKept(...row.branches, ...row.paths));
    document.querySelector("#board .cards").replaceChildren(
      live(model),
      card("Answers that are owed", owed(model), "Nobody owes an answer."),
      card("Contested claims", claims.filter((each) => contested.has(each.id) || each.state === "contested").map(claimRow), "No two agents claim the same paths."),
      card("Mismatches", mismatches.map((row) => () => el("li", {}, row.agent ? [el("b", {}, name(row.agent)), ": "] : "", cut(row.text, 240), " ", model.task.has(row.task) ? opens("task", row.task, "task") : "")), "Every worker is what was asked for."),
      tasks(model),
      card("Claims that are held", held.map(claimRow), "No path is claimed."),
      card("Unread", board.unread.filter(([id, n]) => n && agentKept(id)).sort((a, b) => b[1] - a[1]).map(([id, n]) => () => el("li", {}, el("b", {}, name(id)), ` has ${count(n, "unread signal")}`)), "Everybody has read everything."),
      card("Branches that overlap", overlaps.map((row) => () => el("li", {}, el("code", {}, row.branches.join(" ↔ ")), " ",
        row.conflicts === undefined ? badge("not tried") : row.conflicts ? badge("conflicts", "bad") : badge("merges", "good"), el("br"), el("span", { class: "quiet" }, cut(row.paths.join(", "), 240)))), "No two branches change the same files."),
    );
  };
  page.sections.board = { build, show };
})();
