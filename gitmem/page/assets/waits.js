"use strict";
/* Who waits for whom, the first thing that the page says; the person may be notified of what is new. Who owes what is in the data. */
(() => {
  const page = window.gitmemPage;
  const { el, cut, count, link, since, say } = page;
  const { wait } = page.words;
  const FIRST = 5;
  const FEW = 3; // notifications at a time; of more there is one
  const $ = (id) => document.getElementById(id);

  /** A command, which breaks between words alone. */
  const typed = (line) => el("code", {}, line.split(" ").flatMap((word, at) => [at ? " " : "", el("span", { class: "nowrap" }, word)]));
  const saidIn = (row) => cut(page.model.signal.get(row.id)?.text ?? row.text, 140);
  const open = (row) => (row.thread ? page.open("thread", row.thread, row.id) : page.open("task", row.id));
  const rowOf = (row) =>
    el("li", { class: row.yours ? "yours" : "" },
      el("p", {}, ...wait(row), " ", link(saidIn(row) || row.id, () => open(row), { dir: "auto" })),
      el("p", { class: "quiet" }, since(row.since), row.wu ? ` · ${row.wu}` : ""),
      el("div", { class: "ways" }, ...(page.ways(row) ?? row.commands.map(typed))));

  /** Show what the filters leave. */
  page.showWaits = () => {
    const every = page.data.board.waits;
    const together = new Map(); // what several owe alike is one row
    for (const row of page.kept.waits(page.model)) {
      const key = [row.id, row.yours, row.to_do].join(" ");
      const first = together.get(key);
      if (first) first.others.push(row.owes);
      else together.set(key, { ...row, others: [] });
    }
    const rows = [...together.values()];
    const list = el("ol", { class: "plain" });
    const more = el("button", { type: "button", class: "more", onclick: () => show(rows.length) });
    const show = (most) => {
      list.append(...rows.slice(list.children.length, most).map((row) => rowOf(row)));
      more.textContent = `Show ${count(rows.length - list.children.length, "more", "more")}`;
      more.hidden = list.children.length === rows.length;
    };
    show(FIRST);
    const none = every.length ? `Nobody for ${page.narrowing()} (${page.number.format(every.length)} without the filter).` : "Nobody waits for anybody.";
    $("waits").lastElementChild.replaceChildren(rows.length ? list : el("p", { class: "quiet" }, none), more);
    $("waits-count").textContent = rows.length ? page.number.format(rows.length) : "";
    const { agent, why } = page.data.you ?? {};
    $("you").textContent = agent ? `You are ${page.model.name(agent)}` : page.served && why ? `You can't answer here: ${why}` : "";
  };

  /* Notifications, in a page that a server keeps up to date. */
  let known = null;
  const store = (change) => { try { return change(window.localStorage); } catch { return null; } };
  const isOn = () => window.Notification?.permission === "granted" && store((storage) => storage.getItem("gitmem-notify")) !== "off";
  const label = () => {
    $("notify").hidden = !page.served || !("Notification" in window) || !page.data?.you?.agent;
    $("notify").textContent = isOn() ? "Notifications: on" : "Notify me";
    $("notify").setAttribute("aria-pressed", String(isOn()));
  };
  const notify = (title, body, tag, row) => {
    const shown = new Notification(title, { body, tag });
    shown.onclick = () => { window.focus(); if (row) open(row); };
  };
  /** Tell of what waits for the person since the data before. */
  page.tellWaits = () => {
    const mine = page.data.board.waits.filter((each) => each.yours);
    const fresh = known ? mine.filter((each) => !known.has(`${each.id} ${each.since}`)) : [];
    known = new Set(mine.map((each) => `${each.id} ${each.since}`));
    label();
    if (!fresh.length) return;
    say(`${count(fresh.length, "new answer is", "new answers are")} waited for`);
    if (!isOn() || document.hasFocus()) return;
    if (fresh.length > FEW) notify(`${count(fresh.length, "thing")} more wait for you`, page.data.repository, "gitmem");
    else for (const row of fresh) notify(`${page.model.name(row.waiter)} waits for you ${row.to_do}`, saidIn(row), row.id, row);
  };
  page.listenWaits = () => {
    $("notify").addEventListener("click", async () => {
      const turn = isOn() ? "off" : "on";
      if (turn === "on" && (await Notification.requestPermission()) !== "granted") {
        say("The browser does not allow notifications of this page.");
        return;
      }
      store((storage) => storage.setItem("gitmem-notify", turn));
      label();
    });
  };
})();
