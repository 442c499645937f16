"use strict";
/* Where everything of the timeline is: a lane for each agent, then one for each branch. */
(() => {
  const page = window.gitmemPage;
  const AXIS = 24; // the height of the scale of times
  const MARKS = 26; // of the part of a lane that has the signals
  const ROW = 9; // of a row of spans
  const ROWS_MAX = 3; // rows of tasks or of claims in a lane; what overlaps more shares the last
  const BRANCHES_MAX = 12;
  const BRANCH = 20;

  /** Give overlapping spans rows of their own. */
  const pack = (spans) => {
    const ends = [];
    for (const span of spans.sort((a, b) => a.start - b.start)) {
      let row = ends.findIndex((end) => end <= span.start);
      if (row < 0) row = Math.min(ends.length, ROWS_MAX - 1);
      span.row = row;
      ends[row] = Math.max(ends[row] ?? -Infinity, span.end);
    }
    return ends.length;
  };

  const taskSpan = (task, made) => {
    const end = task.ended ?? (task.open ? Math.max(made, task.at) : task.taken ?? task.at);
    return { kind: "task", row: 0, start: task.at, taken: task.taken, end: Math.max(end, task.at), item: task, label: task.text };
  };
  const claimSpan = (claim) => ({
    kind: "claim", row: 0, start: claim.start, end: Math.max(claim.start, claim.ended ?? claim.until), item: claim, label: claim.paths.join(" "),
  });

  /**
   * Lay out what the filters leave.
   * Returns the lanes, from the top, each with its marks in the order of time, and the height of all.
   */
  const layout = (model, kept) => {
    const { data } = model;
    const lanes = new Map();
    const lane = (id) => {
      if (!lanes.has(id)) lanes.set(id, { agent: id, marks: [], sessions: [], spans: [], passed: [], taskRows: 0, claimRows: 0 });
      return lanes.get(id);
    };
    const all = !page.filtered();
    for (const { id } of data.agents) if (all || page.filter.agent === id) lane(id);
    for (const signal of kept.signals) lane(signal.from).marks.push(signal);
    if (!all) for (const signal of kept.signals) if (signal.to.length < 6) signal.to.forEach(lane);
    for (const task of kept.tasks) lane(task.holder ?? task.to ?? task.from).spans.push(taskSpan(task, data.made));
    for (const claim of kept.claims) lane(claim.agent).spans.push(claimSpan(claim));
    if (!all) for (const row of kept.passed) lane(row.agent);
    const ids = new Set(lanes.keys());
    for (const row of kept.passed) if (ids.has(row.agent)) lane(row.agent).passed.push(row);
    for (const session of data.sessions)
      if (ids.has(session.agent) && (!page.filter.wu || session.wu === page.filter.wu)) lane(session.agent).sessions.push(session);
    const order = new Map(data.agents.map((each, place) => [each.id, [each.first ?? 0, place]]));
    const first = (each) => order.get(each.agent) ?? [Infinity, 0];
    const sorted = [...lanes.values()].sort((a, b) => first(a)[0] - first(b)[0] || first(a)[1] - first(b)[1]);
    let y = AXIS;
    for (const each of sorted) {
      const [tasks, claims] = ["task", "claim"].map((kind) => each.spans.filter((span) => span.kind === kind));
      each.taskRows = pack(tasks);
      each.claimRows = pack(claims);
      each.y = y;
      each.h = MARKS + 10 + (each.taskRows + each.claimRows) * ROW + 4;
      y += each.h;
    }
    const branches = layBranches(model, kept.commits, y + 6);
    const place = new Map(sorted.map((each) => [each.agent, each]));
    return { lanes: sorted, place, branches, height: branches.length ? branches.at(-1).y + BRANCH + 8 : y + 4 };
  };

  /** A row for each branch with commits, the latest first; a commit of several stands in the first of them. */
  const layBranches = (model, commits, top) => {
    const tips = new Map(model.data.branches.map((each) => [each.name, each]));
    const rows = new Map();
    for (const commit of commits) {
      const name = commit.branches[0] ?? "";
      if (!rows.has(name)) rows.set(name, { name, commits: [], tip: tips.get(name) });
      rows.get(name).commits.push(commit);
    }
    const last = (row) => Math.max(row.tip?.at ?? -Infinity, ...row.commits.slice(0, 1).map((each) => each.at));
    const found = [...rows.values()];
    for (const row of found) row.commits.sort((a, b) => a.at - b.at);
    found.sort((a, b) => b.commits.length - a.commits.length || last(b) - last(a));
    const shown = found.slice(0, BRANCHES_MAX - 1);
    const rest = found.slice(BRANCHES_MAX - 1);
    if (rest.length === 1) shown.push(rest[0]);
    else if (rest.length) shown.push({ name: `${rest.length} more branches`, commits: rest.flatMap((each) => each.commits).sort((a, b) => a.at - b.at) });
    shown.forEach((row, place) => { row.y = top + 18 + place * BRANCH; row.h = BRANCH; });
    return shown;
  };

  /** The times that the timeline spans: all, and those of the most signals if a few clocks are far from the others. */
  const spans = (model) => {
    const { data } = model;
    const times = [
      ...data.signals.map((each) => each.at), ...data.tasks.map((each) => each.at), ...data.claims.map((each) => each.start),
      ...data.sessions.flatMap((each) => [each.start, each.end ?? each.last ?? each.start]),
    ].filter(page.valid);
    if (!times.length) times.push(...data.commits.map((each) => each.at).filter(page.valid));
    if (!times.length) times.push(data.made);
    times.sort((a, b) => a - b);
    const [low, high] = [times[0], times.at(-1)];
    const [early, late] = [times[Math.floor(times.length * 0.02)], times[Math.ceil(times.length * 0.98) - 1] ?? high];
    const pad = (a, b) => {
      const by = Math.max((b - a) * 0.03, 2e3);
      return [a - by, b + by];
    };
    const apart = high - low > 25 * Math.max(late - early, 60e3);
    return { all: pad(low, high), first: apart ? pad(early, late) : pad(low, high), apart };
  };

  Object.assign(page, { layout, spans, measures: { AXIS, MARKS, ROW, BRANCH } });
})();
