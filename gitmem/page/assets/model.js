"use strict";
/* The data by their ids, and which of them the filters leave. References may lead nowhere: the log is what peers wrote. */
(() => {
  const page = window.gitmemPage;
  const LISTS = ["notes", "agents", "sessions", "signals", "threads", "tasks", "claims", "commits", "branches", "nodes", "relations"];

  const STATES = { converged: ["agreed by all", "good"], rejected: ["rejected", "bad"], countered: ["countered", "warn"],
    open: ["open", "warn"], settled: ["settled", ""], ambiguous: ["ambiguous", "bad"], notice: ["notice", ""], large: ["too large to evaluate", "warn"] };

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

  const groupedByEach = (rows, keys, value = (row) => row) => {
    const found = new Map();
    for (const row of rows) for (const key of keys(row)) found.set(key, [...(found.get(key) ?? []), value(row, key)]);
    return found;
  };
  const sharesMinutes = (times) => new Set(times.map((at) => Math.floor(at / 60e3))).size < times.length;
  /** What a task was made to wait for, whether or not that has ended. */
  const waits = (task) => task.waits_for ?? task.blocked_by ?? [];
  /** The work units of what is part of a task: what it says itself, and that of the task. */
  const unitsOf = (model, row) => [row.wu, model.task.get(row.task)?.wu];
  const indexBoard = (model, board) => {
    const asks = new Map(model.signals.toReversed().map((each) => [each.task, each.id])); // of a task: the first signal about it
    model.owed = grouped(board.waits, (each) => (each.thread ? each.id : each.state === "submitted" ? asks.get(each.id) : undefined));
    model.owedTask = grouped(board.waits, (each) => (each.thread ? undefined : each.id));
    model.closed = grouped(board.gates, (each) => each.agent);
    model.blocking = groupedByEach(board.gates, (gate) => gate.blockers.map((each) => each.signal), (gate, key) => ({ gate, why: gate.blockers.find((each) => each.signal === key).why }));
    model.passed = by(board.passed);
    model.passedSignal = groupedByEach(board.passed, (row) => row.signals);
    model.passedClaim = groupedByEach(board.passed, (row) => row.claims);
    model.contests = groupedByEach(board.contested, (row) => row.sides.map((side) => side.claim));
    model.mismatched = grouped(board.mismatches, (each) => each.task);
    const handoffs = model.data.tasks.filter((each) => each.hands);
    model.handedBy = { tasks: groupedByEach(handoffs, (each) => each.hands.tasks), claims: groupedByEach(handoffs, (each) => each.hands.claims) };
    model.onBranch = grouped(model.data.sessions, (each) => each.branch);
  };

  /** Index the data of a page. */
  const index = (data) => {
    for (const name of LISTS) data[name] ??= [];
    data.board = { gates: [], passed: [], unread: [], waits: [], contested: [], mismatches: [], overlaps: [], open_tasks: [], ...data.board };
    const model = { data };
    page.seconds = [data.signals, data.tasks, data.commits, data.claims].some((rows) => sharesMinutes(rows.map((each) => each.at ?? each.start)));
    model.agents = by(data.agents);
    model.lanesByName = new Map(data.agents.map((each) => [each.name, each.id]));
    const named = grouped(data.agents, (each) => each.name);
    model.name = (id) => {
      const agent = model.agents.get(id);
      const isShared = agent?.writer && named.get(agent.name).length > 1;
      return agent ? `${agent.name}${isShared ? ` @${agent.writer}` : ""}` : String(id ?? "unknown");
    };
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
    model.waitedBy = groupedByEach(data.tasks, waits);
    model.claim = by(data.claims);
    model.commit = by(data.commits);
    model.node = by(data.nodes);
    model.out = grouped(data.relations, (each) => each.from);
    model.in = grouped(data.relations, (each) => each.to);
    indexBoard(model, data.board);
    model.lastAt = (thread) => model.inThread.get(thread.id)?.at(-1)?.at ?? -Infinity;
    const units = new Map();
    for (const rows of [data.signals, data.tasks, data.claims, data.commits, data.nodes, data.sessions, data.board.gates, data.board.passed])
      for (const { wu } of rows) if (wu) units.set(wu, (units.get(wu) ?? 0) + 1);
    model.units = [...units.keys()].sort(new Intl.Collator("en", { numeric: true }).compare); // peers can write thousands
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
  const fits = (model, row, agents, parts, wu = row.wu) => {
    if (filter.wu && wu !== filter.wu) return false;
    if (filter.agent && !agents(row).includes(filter.agent)) return false;
    if (!filter.text) return true;
    const text = words(model, row, () => parts(row));
    return searched().every((word) => text.includes(word));
  };
  /** The words of the search: all of them must be there, anywhere. */
  let [searchedText, searchedWords] = ["", []];
  const searched = () => {
    if (searchedText !== filter.text) [searchedText, searchedWords] = [filter.text, filter.text.split(/\s+/u).filter(Boolean)];
    return searchedWords;
  };
  const state = (thread) => (thread ? `${thread.state} ${(Object.hasOwn(STATES, thread.state) ? STATES[thread.state][0] : "")}` : "");
  const role = (model, id) => model.agents.get(id)?.role;
  const oneOf = (units) => units.find((unit) => unit === filter.wu); // of something on several work units
  const agentWords = (model, ...ids) => ids.flatMap((id) => (id === undefined ? [] : [model.name(id), role(model, id)]));
  const kept = {
    signals: (model) =>
      model.signals.filter(
        (each) =>
          filter.intents.has(intentOf(each)) &&
          fits(model, each, (s) => [s.from, ...s.to], (s) => [s.text, ...agentWords(model, s.from), ...s.to.map(model.name), s.wu, s.id, s.intent, state(model.thread.get(s.thread))])),
    tasks: (model) =>
      model.data.tasks.filter((each) =>
        fits(model, each, (t) => [t.from, t.to, t.holder], (t) => [t.text, t.state, t.state_text, t.purpose, t.priority, t.result, t.mismatch, ...t.notes, ...(waits(t).length ? ["waits for", ...waits(t)] : []), t.wu, t.id, t.target, ...agentWords(model, t.from, t.to, t.holder)])),
    claims: (model) =>
      model.data.claims.filter((each) =>
        fits(model, each, (c) => [c.agent], (c) => [...c.paths, c.reason, c.state, c.mode, ...unitsOf(model, c), c.id, c.task, ...agentWords(model, c.agent)], oneOf(unitsOf(model, each)))),
    commits: (model) =>
      model.data.commits.filter((each) =>
        fits(model, each, (c) => [c.agent ?? c.person ?? byName(model, c)], (c) => ["commit", c.subject, c.author, c.id, ...unitsOf(model, c), c.task, ...c.branches, ...agentWords(model, c.agent)], oneOf(unitsOf(model, each)))),
    nodes: (model) =>
      model.data.nodes.filter((each) =>
        fits(model, each, (n) => [n.agent, ...(n.history ?? []).map((h) => h.agent)], (n) => [n.text, n.type, n.lifecycle, n.status, n.stale && `stale ${n.stale}`, n.superseded_by && "superseded", n.id, n.wu, ...n.tags, ...n.paths, ...(n.history ?? []).map((h) => h.what), ...agentWords(model, n.agent)])),
    sessions: (model) =>
      model.data.sessions.filter((each) =>
        fits(model, each, (s) => [s.agent], (s) => [s.name, s.status, s.wu, s.role, s.branch, s.worktree, s.model, s.activity, ...agentWords(model, s.agent)])),
    passed: (model) =>
      model.data.board.passed.filter((each) => fits(model, each, (p) => [p.agent], (p) => [p.reason, p.rule, "passed", p.past, p.wu, p.id, ...p.signals, ...p.claims, ...agentWords(model, p.agent)])),
    gates: (model) =>
      model.data.board.gates.filter((each) =>
        fits(model, each, (g) => [g.agent, ...g.blockers.map((b) => b.from)], (g) => ["gate", g.wu, ...g.blockers.flatMap((b) => [b.why, b.signal, model.signal.get(b.signal)?.text]), ...agentWords(model, g.agent)])),
    waits: (model) =>
      model.data.board.waits.filter((each) =>
        fits(model, each, (w) => [w.owes, w.waiter], (w) => [w.text, w.what, w.to_do, w.anyone, w.wu, w.id, model.task.get(w.id)?.state_text, ...agentWords(model, w.owes, w.waiter)])),
    contests: (model) =>
      model.data.board.contested.filter((each) =>
        fits(model, each, (c) => c.sides.map((side) => side.agent), (c) => ["contested", ...c.overlaps.flat(), ...c.sides.flatMap((side) => [side.claim, model.claim.get(side.claim)?.reason, ...agentWords(model, side.agent)])],
          oneOf(each.sides.map((side) => side.wu)))),
    mismatches: (model) =>
      model.data.board.mismatches.filter((each) => {
        const task = model.task.get(each.task);
        return fits(model, each, (m) => [m.agent, task?.from], (m) => ["mismatch", m.text, m.task, task?.text, task?.state_text], task?.wu);
      }),
    unread: (model) =>
      model.data.board.unread
        .filter((each) => fits(model, each, (u) => [u.agent], (u) => ["unread", ...agentWords(model, u.agent)], oneOf(Object.keys(each.units))))
        .map((each) => (filter.wu ? { ...each, count: each.units[filter.wu] } : each)),
    overlaps: (model) =>
      model.data.board.overlaps.filter((each) => {
        const sessions = each.branches.flatMap((branch) => model.onBranch.get(branch) ?? []);
        return fits(model, each, () => sessions.map((session) => session.agent), (o) => ["overlap", ...o.branches, ...o.paths], oneOf(sessions.map((session) => session.wu)));
      }),
  };
  /** The lane that has the name of a commit's author, where the log does not say who made it. */
  const byName = (model, commit) => model.lanesByName.get(commit.author);
  /** Prepare the texts that are searched, so that the first key of a search is as fast as the next. */
  const warm = (model) => {
    const before = filter.text;
    filter.text = " "; // no word, which any text has
    for (const rows of Object.values(kept)) rows(model);
    filter.text = before;
  };
  /** Return the threads with a signal that the filters leave, the latest first. */
  const threadsOf = (model, signals) => {
    const ids = new Set(signals.map((each) => each.thread));
    return [...ids].map((id) => model.thread.get(id)).sort((a, b) => model.lastAt(b) - model.lastAt(a));
  };
  /** Say what the filters of the board leave: the intents are of the timeline alone. */
  const narrowing = () => [filter.agent && page.model.name(filter.agent), filter.wu, filter.text && `“${filter.text}”`].filter(Boolean).join(", ");
  const filtered = () => Boolean(filter.agent || filter.wu || filter.text || filter.intents.size < page.INTENTS.length);

  Object.assign(page, { THREAD_STATES: STATES, waits, unitsOf, index, filter, kept, threadsOf, narrowing, filtered, warm, intentOf });
})();
