"use strict";
/* What the timeline answers to: pointer, wheel, keys; and the section with its tables. */
(() => {
  const page = window.gitmemPage;
  const { el, when, cut, count, say } = page;
  const { MARKS, ROW, BRANCH } = page.measures;
  const view = page.timelineView;
  const { state } = view;
  let parts = null;

  /** Return what is at a point of the canvas: the nearest signal, or a commit, task, claim, session or agent. */
  const find = (px, py) => {
    const y = py + parts.box.scrollTop;
    const near = view.perPixel() * 9;
    const nearest = (rows) => {
      const when_ = view.at(px);
      const [a, b] = [view.bisect.left(rows, when_ - near), view.bisect.right(rows, when_ + near)];
      return rows.slice(a, b).sort((m, n) => Math.abs(m.at - when_) - Math.abs(n.at - when_))[0];
    };
    const branch = state.plan.branches.find((row) => y >= row.y && y < row.y + row.h);
    if (branch) {
      const commit = px > state.gutter ? nearest(branch.commits) : undefined;
      return commit ? { kind: "commit", item: commit } : null;
    }
    const lane = state.plan.lanes.find((each) => y >= each.y && y < each.y + each.h);
    if (!lane) return null;
    if (px < state.gutter) return { kind: "agent", item: page.model.agents.get(lane.agent) };
    if (y < lane.y + MARKS) {
      const signal = nearest(lane.marks);
      return signal ? { kind: "signal", item: signal, signal } : null;
    }
    const when_ = view.at(px);
    const row = Math.floor((y - lane.y - MARKS - 10) / ROW);
    const covers = (each) => when_ >= each.start - near / 2 && when_ <= each.end + near / 2;
    const span = lane.spans.find((each) => row === each.row + (each.kind === "task" ? 0 : lane.taskRows) && covers(each));
    if (span) return { kind: span.kind, item: span.item };
    const passed = row < 0 ? nearest(lane.passed) : undefined;
    if (passed) return { kind: "passed", item: passed };
    const session = row < 0 && lane.sessions.find((each) => when_ >= each.start && when_ <= (each.end ?? each.last ?? page.data.made));
    return session ? { kind: "session", item: session } : null;
  };

  const { name, names } = page.words;
  const gates = (rows, isNamed) => (rows.length ? ` · the gate of ${rows.slice(0, 5).map((gate) => `${gate.wu}${isNamed ? ` is closed to ${page.model.name(gate.agent)}` : ""}`).join(", ")}${isNamed ? "" : " is closed"}` : "");
  const tips = {
    signal: (each) => [[el("b", {}, name(each.from)), " to ", ...(each.to.length ? names(each.to.slice(0, 5)) : ["everyone"]), " · ", each.intent], cut(each.text, 220), `${when(each.at, true)}${each.wu ? ` · ${each.wu}` : ""}${page.model.owed.has(each.id) ? ` · ${page.model.owed.get(each.id).some((row) => row.what === "answer") ? "an answer" : "the start of a task"} is owed` : ""}${gates((page.model.blocking.get(each.id) ?? []).map(({ gate }) => gate), true)}`],
    task: (each) => [[el("b", {}, "Task: "), each.state_text ?? each.state], cut(each.text, 220), `asked ${when(each.at)}${each.taken ? `, taken ${when(each.taken)}` : ""}${each.ended ? `, ended ${when(each.ended)}` : ""}`, each.mismatch && `mismatch: ${cut(each.mismatch, 160)}`],
    claim: (each) => [[el("b", {}, "Claim: "), each.state], cut(each.paths.join(" "), 220), cut(each.reason, 120), `${when(each.start)} to ${when(each.ended ?? each.until)}`],
    commit: (each) => [[el("b", {}, "Commit "), each.id.slice(0, 10)], cut(each.subject, 220), `${each.agent ? page.model.name(each.agent) : each.author} · ${when(each.at, true)}${each.inferred ? " · inferred" : ""}`],
    passed: (each) => [page.words.passing(each), cut(each.reason, 220), when(each.at, true)],
    session: (each) => [[el("b", {}, "Session "), each.name], [each.role, each.model, each.branch, each.wu].filter(Boolean).join(" · "), `${when(each.start)} to ${each.end ? when(each.end) : each.live ? "now" : `${when(each.last)}, still open`}`],
    agent: (each) => [[el("b", {}, each.name), each.live ? " · live" : ""], cut(each.identity, 120), `${[each.role, each.client].filter(Boolean).join(" · ")}${gates(page.model.closed.get(each.id) ?? [], false)}`, "Click: only this agent"],
  };
  const hideTip = () => { parts.tip.hidden = true; };
  const showTip = (found, left, top) => {
    if (!found?.item) return hideTip();
    parts.tip.replaceChildren(...tips[found.kind](found.item).filter((line) => line && line.length).map((line) => el("p", { dir: "auto" }, ...[line].flat())));
    parts.tip.hidden = false;
    const box = parts.tip.getBoundingClientRect();
    parts.tip.style.left = `${Math.max(4, Math.min(window.innerWidth - box.width - 8, left + 14))}px`;
    parts.tip.style.top = `${top + 18 + box.height > window.innerHeight ? Math.max(4, top - box.height - 12) : top + 18}px`;
    return undefined;
  };

  const activate = (found) => {
    if (!found?.item) return;
    hideTip();
    if (found.kind === "signal") focus(found.item, false);
    if (found.kind === "signal") page.open("thread", found.item.thread, found.item.id);
    else if (found.kind === "agent") page.setFilter({ agent: page.filter.agent === found.item.id ? "" : found.item.id });
    else if (found.kind !== "session") page.open(found.kind, found.item.id);
  };

  const reveal = (when_, y) => {
    if (when_ < state.view[0] || when_ > state.view[1]) {
      const half = (state.view[1] - state.view[0]) / 2;
      view.setView([when_ - half, when_ + half]);
    }
    if (y < parts.box.scrollTop + 40 || y > parts.box.scrollTop + state.height - 30) parts.box.scrollTop = y - state.height / 2;
    view.later();
  };
  /** The rows that the arrow keys go through, from the top: signals of a lane, what was passed in it, commits of a branch. */
  const rows = () => [
    ...state.plan.lanes.flatMap((lane) => [{ kind: "signal", marks: lane.marks }, { kind: "passed", marks: lane.passed, y: lane.y + MARKS + 4 }]),
    ...state.plan.branches.map((row) => ({ kind: "commit", marks: row.commits, y: row.y + BRANCH / 2 })),
  ].filter((row) => row.marks.length);
  const chosen = () => state.other ?? (state.focus && { kind: "signal", item: state.focus });
  const rowOf = ({ kind, item }) => rows().findIndex((row) => row.kind === kind && row.marks.some((each) => each.id === item.id));
  /** Choose a mark of a row, as `focus` does a signal. */
  const choose = (row, item) => {
    if (row.kind === "signal") return focus(item);
    [state.focus, state.other] = [null, { kind: row.kind, item, y: row.y }];
    reveal(item.at, row.y);
    const box = parts.canvas.getBoundingClientRect();
    showTip(state.other, box.left + view.x(item.at), box.top + row.y - parts.box.scrollTop);
    say(`${[...parts.tip.children].map((line) => line.textContent).join(". ")}. ${row.marks.indexOf(item) + 1} of ${row.marks.length}.`);
    return undefined;
  };
  /** Find the chosen mark again in a new plan. */
  const again = () => {
    if (!state.other) return;
    const row = rows()[rowOf(state.other)];
    state.other = row ? { ...state.other, item: row.marks.find((each) => each.id === state.other.item.id), y: row.y } : null;
  };
  /** Choose a signal: bring it into view, mark it, say it. */
  const focus = (signal, tell = true) => {
    [state.focus, state.other] = [signal, null];
    const y = view.yOf(signal);
    reveal(signal.at, y);
    if (!tell) return;
    const place = state.kept.signals.indexOf(signal) + 1;
    say(`${signal.intent} from ${page.model.name(signal.from)} to ${signal.to.length ? signal.to.slice(0, 5).map(page.model.name).join(", ") : "everyone"}, ${when(signal.at)}: ${cut(signal.text, 200)}. ${place} of ${state.kept.signals.length}.`);
    const box = parts.canvas.getBoundingClientRect();
    showTip({ kind: "signal", item: signal }, box.left + view.x(signal.at), box.top + y - parts.box.scrollTop);
  };
  const step = (by) => {
    if (state.other) {
      const row = rows()[rowOf(state.other)];
      return choose(row, row.marks[Math.max(0, Math.min(row.marks.length - 1, row.marks.indexOf(state.other.item) + by))]);
    }
    const all = state.kept.signals;
    if (!all.length) return undefined;
    const here = state.focus ? all.indexOf(state.focus) : -1;
    if (here < 0) {
      const first = view.bisect.left(all, state.view[0]);
      return focus(all[Math.min(all.length - 1, first)]);
    }
    return focus(all[Math.max(0, Math.min(all.length - 1, here + by))]);
  };
  const stepLane = (by) => {
    if (!chosen()) return step(1);
    const { at } = chosen().item;
    const row = rows()[rowOf(chosen()) + by];
    if (!row) return undefined;
    const { marks } = row;
    const after = Math.min(marks.length - 1, view.bisect.left(marks, at));
    const best = [marks[after], marks[after - 1]].filter(Boolean).sort((a, b) => Math.abs(a.at - at) - Math.abs(b.at - at))[0];
    return choose(row, best);
  };
  const middle = () => chosen()?.item.at ?? (state.view[0] + state.view[1]) / 2;
  const KEYS = {
    ArrowRight: () => step(1), ArrowLeft: () => step(-1), ArrowUp: () => stepLane(-1), ArrowDown: () => stepLane(1),
    PageDown: () => step(20), PageUp: () => step(-20), Home: () => step(-Infinity), End: () => step(Infinity),
    "+": () => view.zoomAt(middle(), 1.6), "=": () => view.zoomAt(middle(), 1.6), "-": () => view.zoomAt(middle(), 1 / 1.6),
    "0": () => view.setView(state.all), "[": () => view.pan(-0.4), "]": () => view.pan(0.4),
    Enter: () => (chosen() ? activate({ ...chosen() }) : step(1)),
    " ": () => KEYS.Enter(),
    Escape: () => { state.focus = state.other = null; hideTip(); view.later(); },
  };

  const listen = () => {
    const { box, canvas } = parts;
    box.addEventListener("scroll", view.later, { passive: true });
    box.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(KEYS, event.key)) return;
      event.preventDefault();
      KEYS[event.key]();
    });
    box.addEventListener("focus", () => { if (box.matches(":focus-visible") && !chosen()) step(0); });
    box.addEventListener("blur", hideTip);
    d3.select(canvas).call(view.zoom.on("zoom.tip", (event) => { if (event.sourceEvent) hideTip(); })).on("dblclick.zoom", null);
    canvas.addEventListener("wheel", (event) => { // the rest, but scrolling through the lanes, is d3's
      if (event.ctrlKey || event.metaKey || !(event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))) return;
      event.preventDefault();
      view.pan(((event.deltaX || event.deltaY) / state.width) * (event.deltaMode ? 20 : 1));
    }, { passive: false });
    canvas.addEventListener("pointermove", (event) => {
      if (event.buttons) return;
      const found = find(event.offsetX, event.offsetY);
      canvas.classList.toggle("on", Boolean(found?.item));
      const changed = state.over?.item !== found?.item;
      state.over = found;
      if (changed) view.later();
      showTip(found, event.clientX, event.clientY);
    });
    canvas.addEventListener("click", (event) => activate(find(event.offsetX, event.offsetY)));
    canvas.addEventListener("pointerleave", () => { state.over = null; hideTip(); view.later(); });
    new ResizeObserver(() => { if (box.clientWidth && box.clientWidth !== state.width) requestAnimationFrame(view.resize); }).observe(box);
    window.addEventListener("resize", () => requestAnimationFrame(view.resize));
  };

  const PRINTED = 1000; // rows of each table on paper
  const FOLDS = [["signals", "Signals as a table"], ["tasks", "Tasks"], ["claims", "Claims"], ["commits", "Commits"], ["sessions", "Sessions"], ["passed", "Passed with a reason"]];
  let filling = 0;
  const unfolded = new Set(); // by a search: who closes one meanwhile keeps it closed
  /** Open what a search has hits in, and close it after the search; the threads say what the signals do. */
  const unfold = (kind, fold) => {
    const isFound = page.filter.text && state.kept[kind].length > 0;
    if (isFound && !fold.open && !unfolded.has(kind) && kind !== "signals") {
      unfolded.add(kind);
      fold.open = true;
    } else if (!isFound && unfolded.delete(kind)) fold.open = false;
  };
  /** Fill the tables that are open; the others wait until they are. */
  const tables = (most) => {
    const kept = state.kept;
    const threads = page.threadsOf(page.model, kept.signals);
    parts.threads.replaceChildren(page.tables.threads(threads, { first: most ?? 25, hideCaption: true, empty: page.filtered() ? "No thread fits the filters." : "No signals yet." }));
    for (const [kind] of FOLDS) {
      const fold = parts.folds[kind];
      unfold(kind, fold);
      fold.querySelector("summary").lastChild.textContent = ` (${page.number.format(kept[kind].length)})`;
      fold.querySelector("div").replaceChildren();
      if (fold.open || most) fold.querySelector("div").replaceChildren(page.tables[kind](kind === "signals" ? kept[kind].toReversed() : kept[kind], { first: most ?? 40, hideCaption: true }));
    }
  };

  const build = (section) => {
    const button = (words, label, onclick) => el("button", { type: "button", "aria-label": label, title: label, onclick }, words);
    parts = {
      overview: document.createElementNS("http://www.w3.org/2000/svg", "svg"),
      canvas: el("canvas", { "aria-hidden": "true" }), spacer: el("div"), hint: el("span", { class: "quiet" }),
      tip: el("div", { class: "tip", hidden: true, "aria-hidden": "true" }), threads: el("div"), folds: {},
    };
    parts.overview.setAttribute("class", "overview");
    parts.overview.setAttribute("aria-hidden", "true");
    parts.box = el("div", { class: "lanes", tabindex: "0", role: "application", "aria-roledescription": "timeline", "aria-describedby": "timeline-keys" }, parts.canvas, parts.spacer);
    const swatch = (kind, words) => el("span", {}, el("span", { class: `swatch ${kind}` }), words);
    for (const [kind, title] of FOLDS) {
      const fold = el("details", { class: "fold", ontoggle: () => { if (fold.open && !fold.querySelector("div").hasChildNodes()) tables(); } }, el("summary", {}, title, el("span", { class: "quiet" })), kind === "claims" ? el("p", { class: "quiet" }, "Claims that were refused are not on the log, and so not here.") : "", el("div"));
      parts.folds[kind] = fold;
    }
    section.append(
      el("div", { class: "tools" },
        button("−", "Zoom out", () => view.zoomAt(middle(), 1 / 1.6)), button("+", "Zoom in", () => view.zoomAt(middle(), 1.6)),
        button("◀", "Earlier", () => view.pan(-0.4)), button("▶", "Later", () => view.pan(0.4)), button("All", "Show all times", () => view.setView(state.all)),
        parts.hint,
        page.legend(swatch("session", "session"), swatch("task pale", "task asked"), swatch("task", "taken"), swatch("failed", "failed"), swatch("claim", "claim"), swatch("claim pale", "ended"), swatch("commit", "commit"), swatch("agents", "of an agent"), swatch("tipped", "tip of a branch"), swatch("answer", "answers"), swatch("dots", "to whom"), swatch("passed", "passed with a reason"),
          swatch("outline", "mismatch or contested"), swatch("unsigned", "unsigned"), swatch("ring", "an answer, or the start of a task, is owed"))),
      parts.overview, parts.box,
      el("p", { class: "quiet", id: "timeline-keys" }, "Drag to pan, Ctrl and wheel to zoom, click a mark for its thread. Keys: ← → mark by mark, ↑ ↓ lane by lane and to the commits, Enter opens the mark, + − 0 zoom, [ ] pan."),
      el("h2", {}, "Threads"), parts.threads, ...FOLDS.map(([kind]) => parts.folds[kind]));
    document.body.append(parts.tip);
    view.use(parts);
    view.readColours();
    listen();
  };

  page.sections.timeline = {
    build,
    /** Show what the filters leave; `fresh` if the data are new. */
    show(fresh) {
      state.kept = {};
      for (const kind of ["signals", "tasks", "claims", "commits", "sessions", "passed"]) state.kept[kind] = page.kept[kind](page.model);
      state.keptIds = page.filtered() ? new Set(state.kept.signals.map((each) => each.id)) : null;
      state.plan = page.layout(page.model, state.kept);
      if (fresh || !state.view) {
        const spans = page.spans(page.model);
        const followed = state.view && state.all && state.view[1] >= state.all[1] - 1;
        const whole = state.view && state.all && followed && state.view[0] <= state.all[0] + 1;
        const before = state.view;
        state.all = spans.all;
        state.apart = spans.apart;
        if (!before) state.view = spans.first;
        else if (whole) state.view = state.all;
        else if (followed) view.setView([state.all[1] - (before[1] - before[0]), state.all[1]]);
        else view.setView(before);
        if (state.focus) state.focus = page.model.signal.get(state.focus.id) ?? null;
      }
      if (state.focus && !state.kept.signals.includes(state.focus)) state.focus = null;
      state.over = null;
      again();
      parts.box.setAttribute("aria-label", `Timeline of ${count(state.kept.signals.length, "signal")} of ${count(state.plan.lanes.length, "agent")}`);
      view.resize();
      clearTimeout(filling);
      if (fresh) tables();
      else filling = setTimeout(tables, 150); // not at each key of who types
    },
    leave: hideTip,
    restyle() { view.readColours(); view.draw(); },
    print: () => tables(PRINTED),
    shown: () => [state.kept.signals.length, page.model.signals.length],
    found: () => [["tasks", "task"], ["claims", "claim"], ["commits", "commit"], ["sessions", "session"], ["passed", "rule passed", "rules passed"]].map(([kind, ...words]) => [state.kept[kind].length, ...words]),
    focus, find,
  };
})();
