"use strict";
/* What every section uses: elements, words for times, tables. Text of peers becomes text nodes, never markup. */
(() => {
  const page = (window.gitmemPage = { sections: {} });

  /** Make an element. `on…` are listeners, `class` and the rest attributes; strings become text nodes. */
  const el = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === undefined || value === null || value === false) continue;
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else made.setAttribute(name, value === true ? "" : String(value));
    }
    made.append(...children.flat().filter((child) => child !== undefined && child !== null && child !== ""));
    return made;
  };

  const number = new Intl.NumberFormat("en");
  const count = (n, one, many = `${one}s`) => `${number.format(n)} ${n === 1 ? one : many}`;

  const MINUTE = { day: "2-digit", month: "short", hour: "2-digit", minute: "2-digit" };
  const SECOND = { ...MINUTE, second: "2-digit" };
  let [short, shortWithSeconds, whole] = [];
  /** Write times in UTC, or in the time zone of the browser. */
  const useZone = (timeZone) => {
    page.utc = timeZone === "UTC";
    [short, shortWithSeconds, whole] = [MINUTE, SECOND, { year: "numeric", ...SECOND }].map((parts) => new Intl.DateTimeFormat("en-GB", { ...parts, timeZone }));
  };
  useZone();
  /** Name the time zone of the browser by its distance from UTC. */
  const localZone = () => {
    const part = new Intl.DateTimeFormat("en", { timeZoneName: "longOffset" }).formatToParts(page.data?.made).find((each) => each.type === "timeZoneName");
    return part.value.replace("GMT", "UTC").replace("+00:00", "");
  };
  const valid = (ms) => Number.isFinite(ms) && Math.abs(ms) <= 8.64e15;
  /** Write a time; with the year if it is far from when the page was made, and to the second where entries of the page share a minute. */
  const when = (ms, long = false) => {
    if (!valid(ms)) return "at an unknown time";
    const far = Math.abs(ms - (page.data?.made ?? ms)) > 180 * 86400e3;
    return (long || far ? whole : page.seconds ? shortWithSeconds : short).format(ms);
  };
  const stamp = (ms, words) =>
    valid(ms) ? el("time", { datetime: new Date(ms).toISOString(), title: new Date(ms).toISOString() }, words) : el("span", {}, words);
  /** Show a time, with `long` to the second; the exact time in UTC is its title. */
  const time = (ms, long = false) => stamp(ms, when(ms, long));

  const UNITS = [["d", 86400e3], ["h", 3600e3], ["min", 60e3], ["s", 1e3]];
  /** Write a duration in its two largest units. */
  const duration = (ms) => {
    if (!Number.isFinite(ms)) return "–";
    if (Math.abs(ms) < 1e3) return `${Math.round(ms)} ms`;
    const at = UNITS.findIndex(([, size]) => Math.abs(ms) >= size);
    const [unit, size] = UNITS[at];
    const whole = Math.trunc(ms / size);
    const next = UNITS[at + 1];
    const rest = next ? Math.trunc((Math.abs(ms) % size) / next[1]) : 0;
    return whole >= 10 || !rest ? `${whole} ${unit}` : `${whole} ${unit} ${rest} ${next[0]}`;
  };
  const ago = (ms) => {
    if (!valid(ms)) return "at an unknown time";
    const since = page.data.made - ms;
    return since < 10e3 ? (since < -60e3 ? `in ${duration(-since)}` : "just now") : `${duration(since)} ago`;
  };

  /** Show how long ago something was; the time is its title. */
  const since = (ms) => stamp(ms, ago(ms));

  const cut = (text, most) => {
    const line = String(text ?? "").replace(/\s+/gu, " ").trim();
    return line.length > most ? `${line.slice(0, most - 1).replace(/[\ud800-\udbff]$/u, "")}…` : line;
  };

  /** A small label: a state, an intent. The word carries the meaning, the colour repeats it. */
  const badge = (word, kind = "") => el("span", { class: `badge ${kind}` }, word);
  const link = (text, onclick, attributes = {}) => el("button", { type: "button", class: "link", onclick, ...attributes }, text);

  /**
   * Make a table that shows its first rows, and more when asked.
   * `columns`: [heading, cell(row) → text or nodes, class]. On narrow screens each row is a block with headings before its values.
   */
  const table = (caption, columns, rows, { first = 40, step = 200, empty = "None.", hideCaption = false } = {}) => {
    const box = el("div", { class: "table" });
    if (!rows.length) {
      box.append(el("p", { class: "quiet" }, hideCaption ? empty : `${caption}: ${empty.toLowerCase()}`));
      return box;
    }
    const body = el("tbody", { role: "rowgroup" });
    columns = columns.filter(([, cell], at) => !at || rows.some((row) => cell(row) !== "–")); // none that is empty
    const head = columns.map(([name, , kind]) => el("th", { role: "columnheader", scope: "col", class: kind }, name));
    box.append(
      el("table", { role: "table" },
        el("caption", { class: hideCaption ? "hidden" : undefined }, caption),
        el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...head)), body),
    );
    const more = el("button", { type: "button", class: "more", onclick: () => show(step) });
    const show = (number_) => {
      const from = body.children.length;
      const fresh = document.createDocumentFragment();
      for (const row of rows.slice(from, from + number_)) {
        const cells = columns.map(([name, cell, kind = ""]) => {
          const made = [cell(row)].flat().filter((each) => each !== "");
          return el("td", { role: "cell", class: made.length === 1 && made[0] === "–" ? `${kind} none` : kind, "data-label": name }, ...made);
        });
        fresh.append(el("tr", { role: "row" }, ...cells));
      }
      body.append(fresh);
      const left = rows.length - body.children.length;
      more.textContent = `Show ${number.format(Math.min(step, left))} more of ${number.format(left)}`;
      if (!left) more.remove();
    };
    box.append(more);
    show(first);
    box.showAll = (most) => show(Math.max(0, most - body.children.length));
    return box;
  };

  const probe = el("span", { class: "probe", "aria-hidden": "true" });
  /** Return the colour that a custom property has now, in light or dark. */
  const colour = (name) => {
    if (!probe.isConnected) document.body.append(probe);
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };

  /** Say something to screen readers without moving the focus. */
  let saying = 0;
  const say = (text) => {
    clearTimeout(saying);
    saying = setTimeout(() => (document.getElementById("said").textContent = text), 120);
  };

  const INTENTS = ["INFO", "PROPOSE", "COUNTER", "AGREE", "REJECT"];
  const SHAPES = { INFO: "circle", PROPOSE: "diamond", COUNTER: "triangle", AGREE: "square", REJECT: "cross" };
  /** Add the shape of an intent to a path: shape and colour say the same, for who cannot tell the colours apart. */
  const shape = (path, intent, x, y, r) => {
    switch (SHAPES[intent]) {
      case "diamond":
        path.moveTo(x, y - r * 1.25); path.lineTo(x + r * 1.25, y); path.lineTo(x, y + r * 1.25); path.lineTo(x - r * 1.25, y);
        break;
      case "triangle":
        path.moveTo(x, y - r * 1.2); path.lineTo(x + r * 1.2, y + r); path.lineTo(x - r * 1.2, y + r);
        break;
      case "square":
        path.rect(x - r, y - r, r * 2, r * 2);
        return;
      case "cross": {
        const [a, b] = [r * 0.45, r * 1.25];
        path.moveTo(x, y - a);
        for (const [dx, dy] of [[b - a, -b], [b, -b + a], [a, 0], [b, b - a], [b - a, b], [0, a], [a - b, b], [-b, b - a], [-a, 0], [-b, a - b], [a - b, -b]])
          path.lineTo(x + dx, y + dy);
        break;
      }
      default:
        path.moveTo(x + r, y); path.arc(x, y, r, 0, 2 * Math.PI);
    }
    path.closePath();
  };
  /** Draw an intent's shape as a picture for legends. */
  const icon = (intent) => {
    const made = el("canvas", { width: 32, height: 32, class: "icon", "aria-hidden": "true" });
    made.redraw = () => {
      const to = made.getContext("2d");
      to.clearRect(0, 0, 32, 32);
      to.fillStyle = colour(intent.toLowerCase());
      to.beginPath();
      shape(to, intent, 16, 16, 10);
      to.fill();
    };
    made.redraw();
    return made;
  };

  /** A legend, folded until it is asked for. */
  const legend = (...parts) => el("details", { class: "legend" }, el("summary", {}, "Legend"), el("div", {}, ...parts));

  Object.assign(page, {
    el, legend, number, count, useZone, localZone, when, time, since, duration, ago, cut, badge, link, table, colour, say, valid, INTENTS, shape, icon,
  });
})();
