"use strict";
/* The timeline: drawn on a canvas, only what is visible; the tables below it say the same. */
(() => {
  const page = window.gitmemPage;
  const { cut, colour, count } = page;
  const { AXIS, MARKS, ROW, BRANCH } = page.measures;
  const RADIUS = 4.6;
  const ARCS_MAX = 4000; // in view; with more, only those of the chosen thread are drawn
  const state = { view: null, all: null, plan: null, kept: null, focus: null, other: null, over: null, width: 0, height: 0, gutter: 140, colours: {} };
  let parts = null;

  const COLOURS = ["paper", "panel", "stripe", "line", "ink", "quiet", "accent", "focus", "good", "bad", "warn", "session", "task", "claim", "commit", "info", "propose", "counter", "agree", "reject"];
  const readColours = () => COLOURS.forEach((name) => (state.colours[name] = colour(name)));
  const x = (at) => state.gutter + ((at - state.view[0]) / (state.view[1] - state.view[0])) * (state.width - state.gutter);
  const at = (px) => state.view[0] + ((px - state.gutter) / (state.width - state.gutter)) * (state.view[1] - state.view[0]);
  const markY = (lane) => lane.y + MARKS / 2 + 1;
  const yOf = (signal) => {
    const lane = state.plan.place.get(signal.from);
    return lane && markY(lane);
  };

  /** Find where the marks within the view begin and end, by halving. */
  const bisect = d3.bisector((each) => each.at);
  const within = (marks, margin = 0) => marks.slice(bisect.left(marks, state.view[0] - margin), bisect.right(marks, state.view[1] + margin));
  const perPixel = () => (state.view[1] - state.view[0]) / Math.max(1, state.width - state.gutter);

  /** Where somebody passed a gate or another rule: a triangle that points to the right, as through a door. */
  const drawPassed = (to, rows, y) => {
    to.fillStyle = state.colours.warn;
    to.beginPath();
    for (const row of rows) {
      const px = x(row.at);
      to.moveTo(px - 4, y - 5); to.lineTo(px + 5, y); to.lineTo(px - 4, y + 5); to.closePath();
    }
    to.fill();
  };
  const drawSpans = (to, lane, top) => {
    const c = state.colours;
    const bar = (start, end, y, h, fill, alpha = 1) => {
      const [a, b] = [Math.max(state.gutter - 4, x(start)), Math.min(state.width + 4, x(end))];
      if (b < state.gutter || a > state.width) return null;
      to.globalAlpha = alpha;
      to.fillStyle = fill;
      to.beginPath();
      to.roundRect(a, y, Math.max(2, b - a), h, 2);
      to.fill();
      to.globalAlpha = 1;
      return [a, b];
    };
    for (const session of lane.sessions) bar(session.start, session.end ?? (session.live ? page.data.made : session.last ?? session.start), top + MARKS + 1, 6, c.session);
    drawPassed(to, within(lane.passed, perPixel() * 8), top + MARKS + 4);
    for (const span of lane.spans) {
      const isTask = span.kind === "task";
      const y = top + MARKS + 10 + (span.row + (isTask ? 0 : lane.taskRows)) * ROW;
      const fill = isTask ? c.task : c.claim;
      const isFailed = isTask && page.words.isFailed(span.item);
      const drawn = bar(span.start, span.end, y, ROW - 2, fill, isTask ? 0.45 : ["held", "contested", "behind", "perhaps renewed"].includes(span.item.state) ? 0.9 : 0.45);
      if (isTask && span.taken) bar(span.taken, span.end, y, ROW - 2, fill);
      if (!drawn) continue;
      if (isFailed) { // struck through, whatever the colour
        to.fillStyle = c.bad;
        to.fillRect(drawn[0], y + (ROW - 2) / 2 - 1, Math.max(2, drawn[1] - drawn[0]), 2);
        to.fillRect(drawn[1] - 3, y - 1, 3, ROW);
      }
      if (isTask ? span.item.mismatch : span.item.state === "contested") {
        to.strokeStyle = c.bad;
        to.lineWidth = 1.6;
        to.strokeRect(drawn[0], y, Math.max(2, drawn[1] - drawn[0]), ROW - 2);
      }
    }
  };

  /** Whether a signal is drawn: no line leads to where a filter has left nothing. */
  const isKept = (signal) => signal && (!state.keptIds || state.keptIds.has(signal.id));
  const drawArc = (path, from, fromY, to, toY) => {
    const [x0, x1] = [x(from), x(to)];
    path.moveTo(x0, fromY);
    const bend = Math.min(26, 6 + Math.abs(x1 - x0) / 5);
    if (Math.abs(toY - fromY) < 1) path.quadraticCurveTo((x0 + x1) / 2, fromY - bend, x1, toY);
    else path.bezierCurveTo(x0 + (x1 - x0) * 0.15, (fromY * 2 + toY) / 3, x1 - (x1 - x0) * 0.15, (fromY + toY * 2) / 3, x1, toY);
  };
  const strokeArcs = (to, signals, scroll, colour_, width, alpha) => {
    to.strokeStyle = colour_;
    to.lineWidth = width;
    to.globalAlpha = alpha;
    to.beginPath();
    for (const signal of signals) {
      const before = page.model.signal.get(signal.reply);
      if (!isKept(before) || !isKept(signal)) continue;
      const [y, y0] = [yOf(signal), before && yOf(before)];
      if (y === undefined || y0 === undefined) continue;
      if (Math.max(y, y0) < scroll || Math.min(y, y0) > scroll + state.height) continue;
      drawArc(to, signal.at, y - scroll, before.at, y0 - scroll);
    }
    to.stroke();
    to.globalAlpha = 1;
  };

  /** The chosen or hovered signal: its thread's arcs, lines to its recipients, a ring. */
  const drawChosen = (to, scroll) => {
    const c = state.colours;
    for (const [signal, ring] of [[state.over?.signal, c.accent], [state.focus, c.focus]]) {
      const y = signal && yOf(signal);
      if (y === undefined || y === null) continue;
      strokeArcs(to, (page.model.inThread.get(signal.thread) ?? []).slice(0, ARCS_MAX), scroll, ring, 1.8, 0.9);
      to.setLineDash([2, 3]);
      to.strokeStyle = ring;
      to.lineWidth = 1.2;
      to.beginPath();
      for (const id of signal.to) {
        const lane = state.plan.place.get(id);
        if (!lane) continue;
        to.moveTo(x(signal.at), y - scroll);
        to.lineTo(x(signal.at), markY(lane) - scroll);
        to.moveTo(x(signal.at) + 3, markY(lane) - scroll);
        to.arc(x(signal.at), markY(lane) - scroll, 3, 0, 7);
      }
      to.stroke();
      to.setLineDash([]);
      to.lineWidth = 2.5;
      to.beginPath();
      to.arc(x(signal.at), y - scroll, RADIUS + 5, 0, 7);
      to.stroke();
    }
  };

  /** A ring around a chosen commit or passed rule. */
  const drawOther = (to, scroll) => {
    if (!state.other) return;
    Object.assign(to, { strokeStyle: state.colours.focus, lineWidth: 2.5 });
    to.beginPath();
    to.arc(x(state.other.item.at), state.other.y - scroll, RADIUS + 5, 0, 7);
    to.stroke();
  };

  const drawMarks = (to, lanes, scroll) => {
    const c = state.colours;
    const byIntent = new Map(page.INTENTS.map((intent) => [intent, []]));
    const [owed, unsigned] = [[], []];
    const seen = new Set(); // marks that would cover one another to the pixel are drawn once
    for (const lane of lanes) {
      const y = Math.round(markY(lane) - scroll);
      for (const signal of within(lane.marks, perPixel() * 8)) {
        const px = Math.round(x(signal.at) * 2) / 2;
        const intent = page.intentOf(signal);
        if (page.model.owed.has(signal.id)) owed.push([px, y]);
        if (signal.unsigned) unsigned.push([px, y]);
        const key = (y * 20000 + px * 2) * 8 + page.INTENTS.indexOf(intent);
        if (seen.has(key)) continue;
        seen.add(key);
        byIntent.get(intent).push(px, y);
      }
    }
    to.strokeStyle = c.paper;
    to.lineWidth = seen.size > 5000 ? 0 : 1;
    for (const [intent, places] of byIntent) {
      to.fillStyle = c[intent.toLowerCase()];
      to.beginPath();
      for (let i = 0; i < places.length; i += 2) page.shape(to, intent, places[i], places[i + 1], RADIUS);
      if (to.lineWidth && seen.size <= 5000) to.stroke();
      to.fill();
    }
    to.fillStyle = c.paper;
    to.beginPath();
    for (const [px, y] of unsigned) { to.moveTo(px + RADIUS / 2, y); to.arc(px, y, RADIUS / 2, 0, 7); }
    to.fill();
    to.strokeStyle = c.bad;
    to.lineWidth = 1.6;
    to.beginPath();
    for (const [px, y] of owed) { to.moveTo(px + RADIUS + 3.5, y); to.arc(px, y, RADIUS + 3.5, 0, 7); }
    to.stroke();
  };

  const drawBranches = (to, scroll) => {
    const c = state.colours;
    if (!state.plan.branches.length) return;
    to.fillStyle = c.quiet;
    to.font = "600 11px system-ui, sans-serif";
    to.fillText("Commits", 8, state.plan.branches[0].y - scroll - 5);
    to.fillStyle = c.line;
    to.fillRect(0, state.plan.branches[0].y - scroll - 18, state.width, 1);
    for (const row of state.plan.branches) {
      const y = row.y - scroll + BRANCH / 2;
      if (y < -BRANCH || y > state.height + BRANCH) continue;
      const shown = within(row.commits, perPixel() * 6);
      const [a, b] = [row.commits[0], row.commits.at(-1)].map((each) => Math.min(state.width, Math.max(state.gutter, x(each.at))));
      to.fillStyle = c.line;
      to.fillRect(a, y - 1, Math.max(0, b - a), 2);
      for (const commit of shown) {
        to.fillStyle = commit.agent ? c.accent : c.commit;
        to.globalAlpha = commit.inferred ? 0.55 : 1;
        to.fillRect(x(commit.at) - 3.5, y - 3.5, 7, 7);
      }
      to.globalAlpha = 1;
      const tip = row.tip && page.model.commit.get(row.tip.commit);
      if (tip) {
        to.strokeStyle = c.ink;
        to.lineWidth = 1.5;
        to.strokeRect(x(tip.at) - 6, y - 6, 12, 12);
      }
    }
  };

  const fit = (to, text, width) => {
    let shown = cut(text, 60);
    while (shown.length > 2 && to.measureText(shown).width > width) shown = `${shown.replace(/…$/u, "").slice(0, -2)}…`;
    return shown;
  };
  const drawGutter = (to, scroll) => {
    const c = state.colours;
    to.fillStyle = c.panel;
    to.fillRect(0, 0, state.gutter, state.height);
    to.fillStyle = c.line;
    to.fillRect(state.gutter - 1, 0, 1, state.height);
    for (const lane of state.plan.lanes) {
      const y = lane.y - scroll;
      if (y > state.height || y + lane.h < 0) continue;
      const agent = page.model.agents.get(lane.agent);
      to.fillStyle = agent?.live ? c.good : c.line;
      to.beginPath();
      to.arc(11, y + MARKS / 2 + 1, 4, 0, 7);
      to.fill();
      to.fillStyle = c.ink;
      to.font = "600 12px system-ui, sans-serif";
      to.fillText(fit(to, page.model.name(lane.agent), state.gutter - 28), 21, y + MARKS / 2 + 5);
      const isClosed = page.model.closed.has(lane.agent);
      const about = [isClosed && "gate closed", agent?.role, agent?.client, agent?.person && "person"].filter(Boolean).join(" · ");
      if (about && lane.h > 38) {
        to.fillStyle = isClosed ? c.bad : c.quiet;
        to.font = "10.5px system-ui, sans-serif";
        to.fillText(fit(to, about, state.gutter - 28), 21, y + MARKS + 9);
      }
    }
    to.font = "11.5px system-ui, sans-serif";
    to.fillStyle = c.ink;
    if (state.plan.branches.length) {
      to.fillText("Commits", 8, state.plan.branches[0].y - scroll - 5);
      for (const row of state.plan.branches) to.fillText(fit(to, row.name || "(no branch)", state.gutter - 16), 10, row.y - scroll + BRANCH / 2 + 4);
    }
  };
  const scaleOf = (units, form, scale) => ({ scale, day: form("%Y-%m-%d"), year: form("%Y"), forms: units.map((unit, at) => [unit, form([".%L", "%H:%M:%S", "%H:%M", "%a %d", "%b"][at])]) });
  const LOCAL = scaleOf([d3.timeSecond, d3.timeMinute, d3.timeDay, d3.timeMonth, d3.timeYear], d3.timeFormat, d3.scaleTime);
  const UTC = scaleOf([d3.utcSecond, d3.utcMinute, d3.utcDay, d3.utcMonth, d3.utcYear], d3.utcFormat, d3.scaleUtc);
  const zone = () => (page.utc ? UTC : LOCAL);
  const tickText = (tick) => (zone().forms.find(([unit]) => unit(tick) < tick)?.[1] ?? zone().year)(tick);
  const drawAxis = (to) => {
    const c = state.colours;
    const scale = zone().scale(state.view, [state.gutter, state.width]);
    const ticks = scale.ticks(Math.max(2, (state.width - state.gutter) / 110));
    to.fillStyle = c.panel;
    to.fillRect(0, 0, state.width, AXIS);
    to.fillStyle = c.quiet;
    to.font = "11px system-ui, sans-serif";
    to.textAlign = "center";
    for (const tick of ticks) to.fillText(tickText(tick), Math.min(state.width - 24, Math.max(state.gutter + 20, scale(tick))), 16);
    to.textAlign = "left";
    to.fillText(fit(to, zone().day(state.view[0]), state.gutter - 16), 8, 16);
    to.fillStyle = c.line;
    to.fillRect(0, AXIS - 1, state.width, 1);
    return ticks.map(scale);
  };

  const draw = () => {
    if (!parts || !state.plan || !state.width) return;
    const scroll = parts.box.scrollTop;
    const c = state.colours;
    const to = parts.canvas.getContext("2d");
    const ratio = window.devicePixelRatio || 1;
    to.setTransform(ratio, 0, 0, ratio, 0, 0);
    to.fillStyle = c.paper;
    to.fillRect(0, 0, state.width, state.height);
    const lanes = state.plan.lanes.filter((lane) => lane.y + lane.h > scroll && lane.y < scroll + state.height);
    lanes.forEach((lane) => {
      to.fillStyle = state.plan.lanes.indexOf(lane) % 2 ? c.paper : c.stripe;
      to.fillRect(0, lane.y - scroll, state.width, lane.h);
      drawSpans(to, lane, lane.y - scroll);
    });
    const ticks = drawAxis(to);
    to.fillStyle = c.line;
    to.globalAlpha = 0.5;
    for (const px of ticks) if (px > state.gutter) to.fillRect(px, AXIS, 1, state.height);
    to.globalAlpha = 1;
    drawBranches(to, scroll);
    const shown = within(state.kept.signals, state.view[1] - state.view[0]).filter((each) => {
      const before = each.reply && page.model.signal.get(each.reply);
      return before && Math.max(each.at, before.at) >= state.view[0] && Math.min(each.at, before.at) <= state.view[1];
    });
    if (shown.length <= ARCS_MAX) strokeArcs(to, shown, scroll, c.quiet, 1, shown.length > 600 ? 0.22 : 0.5);
    drawMarks(to, lanes, scroll);
    drawChosen(to, scroll);
    drawOther(to, scroll);
    drawGutter(to, scroll);
    drawAxis(to);
    parts.hint.textContent = shown.length > ARCS_MAX ? `${count(shown.length, "arc")} in view are not drawn: zoom in or filter.` : state.apart && state.view[1] - state.view[0] < (state.all[1] - state.all[0]) / 2 ? "Some times are far from the others: “All” shows them." : "";
    page.timelineView.drawBrush();
  };
  let pending = 0;
  const later = () => {
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(draw);
  };

  Object.assign(page, { timelineView: { state, x, at, markY, yOf, within, bisect, perPixel, draw, later, readColours } });
  page.timelineView.use = (made) => (parts = made);
})();
