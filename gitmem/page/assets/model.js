"use strict";
/* The data by their ids, and which of them the filters leave. References may lead nowhere: the log is what peers wrote. */
(() => {
  const page = window.gitmemPage;
  const LISTS = ["notes", "agents", "sessions", "signals", "threads", "tasks", "claims", "commits", "branches", "nodes", "relations"];

  const by = (rows) => new Map(rows.map((row) => [row.id, row]));
  const grouped = (rows, key) => {
    const found = new Map();
    for (const row of rows) {
      const name = key(row);
      if (name === undefined) continue;
      if (found.has(name)) found.get(name).push(row);
      else found.set(name, [row]);
    }
    return found;
  };

  /** Index the data of a page. */
  const index = (data) => {
    for (const name of LISTS) data[name] ??= [];
    data.board = { unread: [], owed: [], contested: [], mismatches: [], overlaps: [], open_tasks: [], ...data.board };
    const model = { data };
    model.agents = by(data.agents);
    model.name = (id) => model.agents.get(id)?.name ?? String(id ?? "unknown");
    model.signals = data.signals.slice().sort((a, b) => a.at - b.at);
    model.signal = by(model.signals);
    model.order = new Map(model.signals.map((each, place) => [each.id, place]));
    model.inThread = grouped(model.signals, (each) => each.thread);
    model.replies = grouped(model.signals, (each) => each.reply);
    model.thread = by(data.threads);
    for (const [id, signals] of model.inThread)
      if (!model.thread.has(id))
        model.thread.set(id, { id, state: "notice", stands: [], title: signals[0].text, wu: signals[0].wu, signals: signals.length });
    model.task = by(data.tasks);
    model.taskOf = new Map(data.tasks.map((each) => [each.thread, each])); // of a thread: the last of its tasks
    model.claim = by(data.claims);
    model.commit = by(data.commits);
    model.node = by(data.nodes);
    model.out = grouped(data.relations, (each) => each.from);
    model.in = grouped(data.relations, (each) => each.to);
    model.owed = grouped(data.board.owed, (each) => each.signal);
    model.lastAt = (thread) => model.inThread.get(thread.id)?.at(-1)?.at ?? -Infinity;
    const units = new Map();
    for (const rows of [data.signals, data.tasks, data.claims, data.commits, data.nodes, data.sessions])
      for (const { wu } of rows) if (wu) units.set(wu, (units.get(wu) ?? 0) + 1);
    model.units = [...units.keys()].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    model.words = new Map();
    return model;
  };

  const words = (model, row, parts) => {
    let text = model.words.get(row);
    if (text === undefined) model.words.set(row, (text = parts().filter(Boolean).join("\n").toLowerCase()));
    return text;
  };

  /** What the reader asked for: one filter for all sections. */
  const filter = { agent: "", wu: "", text: "", intents: new Set(page.INTENTS) };
  const known = new Set(page.INTENTS);
  const intentOf = (signal) => (known.has(signal.intent) ? signal.intent : "INFO");
  const fits = (model, row, agents, parts) => {
    if (filter.wu && row.wu !== filter.wu) return false;
    if (filter.agent && !agents(row).includes(filter.agent)) return false;
    return !filter.text || words(model, row, () => parts(row)).includes(filter.text);
  };
  const kept = {
    signals: (model) =>
      model.signals.filter(
        (each) =>
          filter.intents.has(intentOf(each)) &&
          fits(model, each, (s) => [s.from, ...s.to], (s) => [s.text, model.name(s.from), ...s.to.map(model.name), s.wu, s.id])),
    tasks: (model) =>
      model.data.tasks.filter((each) =>
        fits(model, each, (t) => [t.from, t.to, t.holder], (t) => [t.text, t.state, t.purpose, t.result, t.wu, t.id, t.target, model.name(t.from), model.name(t.holder ?? t.to)])),
    claims: (model) =>
      model.data.claims.filter((each) =>
        fits(model, each, (c) => [c.agent], (c) => [...c.paths, c.reason, c.state, c.wu, c.id, model.name(c.agent)])),
    commits: (model) =>
      model.data.commits.filter((each) =>
        fits(model, each, (c) => [c.agent], (c) => [c.subject, c.author, c.id, c.wu, ...c.branches, c.agent && model.name(c.agent)])),
    nodes: (model) =>
      model.data.nodes.filter((each) =>
        fits(model, each, (n) => [n.agent, ...(n.history ?? []).map((h) => h.agent)], (n) => [n.text, n.type, n.id, n.wu, ...n.tags, ...n.paths, model.name(n.agent)])),
    sessions: (model) =>
      model.data.sessions.filter((each) =>
        fits(model, each, (s) => [s.agent], (s) => [s.name, s.wu, s.role, s.branch, s.worktree, s.model, model.name(s.agent)])),
  };
  /** Prepare the texts that are searched, so that the first key of a search is as fast as the next. */
  const warm = (model) => {
    const before = filter.text;
    filter.text = "\n\n"; // no text has it
    for (const rows of Object.values(kept)) rows(model);
    filter.text = before;
  };
  /** Return the threads with a signal that the filters leave, the latest first. */
  const threadsOf = (model, signals) => {
    const ids = new Set(signals.map((each) => each.thread));
    return [...ids].map((id) => model.thread.get(id)).sort((a, b) => model.lastAt(b) - model.lastAt(a));
  };
  const filtered = () => Boolean(filter.agent || filter.wu || filter.text || filter.intents.size < page.INTENTS.length);

  Object.assign(page, { index, filter, kept, threadsOf, filtered, warm, intentOf });
})();
