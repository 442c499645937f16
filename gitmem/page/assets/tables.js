"use strict";
/* The tables that say the same as the pictures. */
(() => {
  const page = window.gitmemPage;
  const { el, time, cut, badge, link, table } = page;
  const { name, whom, threadState, taskState, claimState, opens, id, stands, mismatch, threadTitle, passing, waiting, lease, unit } = page.words;

  const answered = ({ reply }) => {
    const to = page.model.signal.get(reply);
    return reply ? el("div", { class: "quiet" }, "answers ", ...(to ? [name(to.from), `: ${cut(to.text, 80)}`] : [ "a signal that is not on this page"])) : "";
  };
  const latest = (row) => time(page.model.lastAt(row));
  page.tables = {
    threads: (rows, options) => table("Threads", [
      ["Thread", (row) => [opens("thread", row.id, cut(threadTitle(row), 140) || row.id), row.in_force ? el("span", { class: "quiet" }, ` first: ${cut(row.title, 90)}`) : ""], "wide"],
      ["State", (row) => threadState(row)],
      ["Where each stands", (row) => el("ul", { class: "stands" }, stands(row).slice(0, 8))],
      ["Work unit", (row) => row.wu ?? "–", "unit"],
      ["Signals", (row) => page.number.format(row.signals ?? 0), "num"],
      ["Last", latest, "nowrap"]], rows, options),
    signals: (rows, options) => table("Signals", [
      ["Time", (row) => time(row.at), "nowrap"], ["Intent", (row) => badge(row.intent, page.intentOf(row))],
      ["From", (row) => name(row.from)], ["To", (row) => whom(row)],
      ["Text", (row) => [link(cut(row.text, 160) || "(no text)", () => page.open("thread", row.thread, row.id)), answered(row)], "wide"],
      ["Work unit", (row) => row.wu ?? "–", "unit"]], rows, options),
    tasks: (rows, options) => table("Tasks", [
      ["Task", (row) => opens("task", row.id, cut(row.text, 120) || row.id), "wide"], ["State", (row) => [taskState(row), mismatch(row), ...lease(row)].flat()], ["Kind", (row) => row.purpose],
      ["From", (row) => name(row.from)], ["To", (row) => (row.to ? name(row.to) : row.target ?? "anyone")], ["Held by", (row) => (row.holder ? name(row.holder) : "–")],
      ["Waits", (row) => (page.waits(row).length ? waiting(row, 3, 40) : "–")], ["Work unit", (row) => row.wu ?? "–", "unit"], ["Asked", (row) => time(row.at), "nowrap"]], rows, options),
    claims: (rows, options) => table("Claims", [
      ["Paths", (row) => opens("claim", row.id, cut(row.paths.join(" "), 120) || row.id), "wide"], ["State", claimState], ["Agent", (row) => name(row.agent)],
      ["Reason", (row) => cut(row.reason, 120) || "–"], ["Work unit", (row) => unit(row) ?? "–", "unit"], ["From", (row) => time(row.start), "nowrap"], ["Until", (row) => time(row.ended ?? row.until), "nowrap"]], rows, options),
    commits: (rows, options) => table("Commits", [
      ["Commit", (row) => opens("commit", row.id, cut(row.subject, 120) || row.id.slice(0, 10)), "wide"],
      ["Id", (row) => id(row.id.slice(0, 10))],
      ["Agent", (row) => (row.agent ? [name(row.agent), row.inferred ? " (inferred)" : ""] : "–")], ["Author", (row) => row.author],
      ["Branches", (row) => cut(row.branches.join(", "), 60)], ["Work unit", (row) => unit(row) ?? "–", "unit"], ["At", (row) => time(row.at), "nowrap"]], rows, options),
    sessions: (rows, options) => table("Sessions", [
      ["Agent", (row) => name(row.agent)], ["Session", (row) => row.name], ["Status", (row) => badge(row.status ?? (row.live ? "live" : "ended"), row.live ? "good" : "")],
      ["Work unit", (row) => row.wu ?? "–", "unit"], ["Role", (row) => row.role ?? "–"], ["Branch", (row) => row.branch ?? "–"], ["Model", (row) => row.model ?? "–"],
      ["From", (row) => time(row.start), "nowrap"], ["Until", (row) => (row.end ? time(row.end) : ["still open, last seen ", time(row.last)])]], rows, options),
  };
  page.tables.passed = (rows, options) => table("Passed with a reason", [
    ["Reason", (row) => opens("passed", row.id, cut(row.reason, 140) || row.id), "wide"], ["What", passing], ["Work unit", (row) => row.wu ?? "–", "unit"], ["At", (row) => time(row.at), "nowrap"]], rows, options);
})();
