"use strict";
/* The figures of `gitmem stats`, as charts with a table beside each. */
(() => {
  const page = window.gitmemPage;
  const { el, count, duration, table, colour } = page;
  let parts = null;
  let charts = [];

  const SERIES = [["signals", "Signals", "info"], ["proposals", "Proposals", "propose"], ["answers", "Answers", "agree"], ["agents", "Agents", "task"]];
  const HOUR = 3600;
  const DAY = 24 * HOUR;
  /** Count what the page's signals say for each hour of the only day; null if the page does not have all of them. */
  const hoursOf = ({ day, signals }) => {
    const start = Date.parse(`${day}T00:00:00Z`);
    const own = page.model.signals.filter((each) => each.at >= start && each.at < start + DAY * 1e3);
    if (!own.length || own.length !== signals) return null;
    const byHour = d3.group(own, (each) => Math.floor((each.at - start) / (HOUR * 1e3)));
    const [first, last] = d3.extent(byHour.keys());
    const from = Math.max(0, Math.min(first, last - 5)); // a single bar says little
    return d3.range(from, last + 1).map((hour) => {
      const rows = byHour.get(hour) ?? [];
      const of = (...intents) => rows.filter((each) => intents.includes(each.intent)).length;
      return { at: start / 1e3 + hour * HOUR, name: `${String(hour).padStart(2, "0")}:00`, signals: rows.length, proposals: of("PROPOSE", "COUNTER"), answers: of("AGREE", "REJECT"), agents: new Set(rows.map((each) => each.from)).size };
    });
  };
  const chart = (to, rows, [key, label, ink], step) => {
    const times = rows.map((each) => each.at);
    const axis = { stroke: colour("quiet"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line") }, font: "11px system-ui, sans-serif" };
    const part = step === HOUR ? [11, 16] : [5, 10];
    return new uPlot({
      width: Math.max(220, to.clientWidth), height: 170, title: "", tzDate: (ts) => uPlot.tzDate(new Date(ts * 1e3), "Etc/UTC"), legend: { show: false }, cursor: { y: false, drag: { x: false } },
      scales: { y: { range: (_, low, high) => [0, Math.max(1, high * 1.1)] }, x: { range: () => [times[0] - step / 2, times.at(-1) + step / 2] } },
      axes: [{ ...axis, values: (_, ticks) => ticks.map((tick) => new Date(tick * 1e3).toISOString().slice(...part)), incrs: (step === HOUR ? [1, 2, 3, 6] : [1, 2, 7, 14, 30, 90, 365]).map((n) => n * step), grid: { show: false } }, { ...axis, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 1e5], size: 48 }],
      series: [{}, { label, stroke: colour(ink), fill: colour(ink), width: 0, paths: uPlot.paths.bars({ size: [0.7, 46] }), points: { show: false } }],
    }, [times, rows.map((each) => Number(each[key]) || 0)], to);
  };

  const tile = (title, spread, none, one, note = "") => el("div", { class: "tile" }, el("span", { class: "quiet" }, title),
    el("b", {}, spread?.n && spread.median_ms !== undefined ? duration(spread.median_ms) : "–"),
    el("span", { class: "quiet" }, spread?.n ? `median of ${count(spread.n, one)}; 9 of 10 within ${duration(spread.p90_ms)}${note}` : none));

  const outcomes = (tasks) => {
    const rows = Object.entries(tasks ?? {}).filter(([, n]) => Number.isFinite(n)).sort((a, b) => b[1] - a[1]);
    const top = Math.max(1, ...rows.map(([, n]) => n));
    const bars = el("div", { class: "bars", "aria-hidden": "true" }, rows.flatMap(([word, n]) => {
      const bar = el("div", { class: "bar" });
      bar.style.width = `${(n / top) * 100}%`;
      return [el("span", {}, word), el("div", {}, bar), el("span", { class: "num" }, page.number.format(n))];
    }));
    return [el("h2", {}, "Tasks by outcome"), rows.length ? el("div", { class: "figure" }, bars, table("Tasks by outcome", [["Outcome", (row) => row[0]], ["Tasks", (row) => page.number.format(row[1]), "num"]], rows, { hideCaption: true })) : el("p", { class: "quiet" }, "No tasks yet.")];
  };

  const build = (section) => {
    parts = { all: el("div"), section };
    section.append(parts.all);
    new ResizeObserver(() => { if (parts.all.clientWidth) for (const { made, box } of charts) made.setSize({ width: Math.max(220, box.clientWidth), height: 170 }); }).observe(parts.all);
  };
  const show = () => {
    const figures = page.data.statistics ?? {};
    const days = figures.days ?? [];
    charts.forEach(({ made }) => made.destroy());
    charts = [];
    const hours = days.length === 1 ? hoursOf(days[0]) : null;
    const step = hours ? HOUR : DAY;
    const rows = hours ?? days.map((each) => ({ ...each, at: Date.parse(`${each.day}T00:00:00Z`) / 1e3, name: each.day }));
    const title = hours ? `By hour of ${days[0].day} (UTC)` : days.length === 1 ? `On ${days[0].day} (UTC)` : "By day (UTC)";
    const boxes = [];
    const spreads = [["Time to the first answer", figures.first_answer], ["Time to agreement", figures.agreement], ["Age of what is unread", figures.unread_age]];
    parts.all.replaceChildren(...[
      el("div", { class: "tiles" }, tile(spreads[0][0], figures.first_answer, "nothing was answered", "answered signal"), tile(spreads[1][0], figures.agreement, "nothing was agreed", "agreement"), tile(spreads[2][0], figures.unread_age, "nothing is unread", "unread signal", "; without broadcasts"),
        el("div", { class: "tile" }, el("span", { class: "quiet" }, "Answers owed"), el("b", {}, page.number.format(figures.unanswered ?? 0)), el("span", { class: "quiet" }, "to signals that ask for one, requests for tasks included; who waits for whom has replies and results, too"))),
      table("How long it took", [["What", (row) => row[0]], ["Median", (row) => duration(row[1]?.median_ms), "num"], ["9 of 10 within", (row) => duration(row[1]?.p90_ms), "num"], ["Of", (row) => page.number.format(row[1]?.n ?? 0), "num"]], spreads),
      el("h2", {}, title),
      days.length ? el("div", { class: "figure" },
        el("div", {}, SERIES.filter(([key]) => days.some((each) => each[key] !== undefined)).flatMap((series) => {
          const box = el("div", { role: "img", "aria-label": `${series[1]} ${hours ? "an hour" : "a day"}; the table beside says the same` });
          boxes.push([box, series]);
          return [el("h3", {}, series[1]), box];
        })),
        table(title, [[hours ? "Hour" : "Day", (row) => row.name, "nowrap"], ...SERIES.map(([key, label]) => [label, (row) => page.number.format(row[key] ?? 0), "num"])], rows.filter((row) => row.signals || !hours).toReversed(), { first: 400, hideCaption: true })) : el("p", { class: "quiet" }, "No day has a signal."),
      figures.ahead ? el("p", { class: "quiet" }, `${count(figures.ahead, "signal")} with a date more than a day ahead; no day counts them.`) : "",
      ...outcomes(figures.tasks),
      el("p", { class: "quiet" }, `As text: `, el("code", {}, "gitmem stats"), `. These figures are of ${count(days.length, "day")} and do not follow the filters above.`)].flat());
    charts = boxes.map(([box, series]) => ({ box, made: chart(box, rows, series, step) }));
  };
  page.sections.figures = { build, show, restyle: show };
})();
