"use strict";
/* How states, agents and references read in every section; what others wrote stays text. */
(() => {
  const page = window.gitmemPage;
  const { el, cut, badge, link, count } = page;

  const STATES = page.THREAD_STATES;
  const STANDS = { agree: ["agrees", "good"], reject: ["rejects", "bad"], counter: ["counters", "warn"],
    pending: ["has not answered", "warn"] };
  const CLAIMS = { held: "good", contested: "bad", behind: "warn", "perhaps renewed": "warn" };
  const has = (all, key) => (Object.hasOwn(all, key) ? all[key] : [String(key), ""]);
  const isFailed = (task) => !task.open && /fail|reject|cancel|refus|expire/u.test(task.state);
  const taskState = (task) => badge(task.state_text ?? task.state, task.open ? "warn" : isFailed(task) ? "bad" : "good");
  const threadState = (thread) => { // nobody owes an answer to the request for a task once it is taken: its state says more
    const task = thread.state === "settled" && page.model.taskOf.get(thread.id);
    if (thread.quorum && thread.state === "converged") return badge("agreed by enough", "good");
    return task ? taskState(task) : badge(...has(STATES, thread.state));
  };
  const claimState = (claim) => badge(claim.state, Object.hasOwn(CLAIMS, claim.state) ? CLAIMS[claim.state] : "");
  const name = (id) => el("bdi", {}, page.model.name(id));
  const names = (ids) => ids.flatMap((id, place) => (place ? [", ", name(id)] : [name(id)]));
  const whom = (signal) => (signal.to.length ? names(signal.to.slice(0, 12)).concat(signal.to.length > 12 ? ` and ${signal.to.length - 12} more` : "") : ["everyone"]);
  const text = (row) => {
    const left = row.cut ? el("span", { class: "quiet" }, ` … ${count(row.cut, "character")} left out; the whole: gitmem thread`) : "";
    return el("p", { class: "text", dir: "auto" }, row.text || "(no text)", left);
  };
  const stands = (thread) => {
    const task = page.model.taskOf.get(thread.id);
    const took = (agent) => task?.holder === agent && (task.taken || task.ended);
    const rows = thread.stands ?? [];
    const isMissing = task?.holder && !rows.some(([agent]) => agent === task.holder);
    const work = () => (task.open ? "has taken the task" : `took the task: ${task.state_text ?? task.state}`);
    return (isMissing ? [...rows, [task.holder, "pending"]] : rows).map(([agent, how]) =>
      el("li", {}, name(agent), " ", how === "pending" && took(agent) ? badge(work(), "") : badge(...has(STANDS, how))));
  };
  /** The tasks that a task waits for, then those that it waited for, each with who has it. */
  const waiting = (task, most = 8, long = 50) => {
    const all = page.waits(task);
    const holdsUp = new Set(task.blocked_by ?? []);
    const [now, before] = [all.filter((each) => holdsUp.has(each)), all.filter((each) => !holdsUp.has(each))];
    const row = (key) => {
      const other = page.model.task.get(key);
      if (!other) return [id(cut(key, 60)), " (not on this page)"];
      const by = other.holder ?? other.to;
      return [opens("task", key, cut(other.text, long) || key), by ? [" of ", name(by)] : "", " ", taskState(other)].flat();
    };
    const part = (words, keys) => (keys.length ? el("div", {}, words, ...keys.slice(0, most).flatMap((key, at) => [at ? ", " : "", ...row(key)]), keys.length > most ? `, and ${keys.length - most} more` : "") : "");
    return [part("waits for: ", now), part(task.open ? "waited for: " : "was to wait for: ", before)].filter(Boolean);
  };
  const waited = (key) => (page.model.waitedBy.get(key) ?? []).slice(0, 20).map((each) => el("p", {}, opens("task", each.id, cut(each.text, 60) || each.id), each.blocked_by?.includes(key) ? " waits for it " : " waited for it ", taskState(each)));
  /** The end of a lease, and since when it is over. */
  const until = (ms) => ms && [page.time(ms, true), ms < page.data.made ? ` (over since ${page.duration(page.data.made - ms)})` : ""];
  const lease = (task) => (task.open && task.until < page.data.made ? [" ", badge("lease over", "warn"), " since ", page.time(task.until)] : []);
  /** The work unit of what is part of a task, with that of the task where it is another one. */
  const unit = (row) => {
    const [own, of] = page.unitsOf(page.model, row);
    return of && of !== own ? (own ? `${own}, its task is of ${of}` : `${of}, that of its task`) : own;
  };
  const KINDS_OF_NODES = new Set(["decision", "bug", "idea", "question", "dependency"]); // tags of discoveries, as `gitmem mem create --type` sets them
  const nodeKind = (node) => (node.type === "discovery" && node.tags.find((tag) => KINDS_OF_NODES.has(tag))) || node.type;
  const nodeState = (node) => [node.status === "active" ? "" : badge(node.status), node.stale ? badge("stale", "bad") : "", node.superseded_by ? badge("superseded", "warn") : ""].filter(Boolean).flatMap((each) => [" ", each]);
  const facts = (pairs) =>
    el("dl", { class: "facts" }, pairs.flatMap(([head, value]) =>
      !value || (Array.isArray(value) && !value.length)
        ? [] : [el("dt", {}, head), el("dd", {}, ...[value].flat())]));
  const mismatch = (task) => (task.mismatch ? [" ", el("span", { class: "badge bad", title: task.mismatch }, "mismatch")] : "");
  const id = (value) => value && el("span", { class: "id" }, value);
  const opens = (kind, key, words) => link(words, () => page.open(kind, key));
  /** What a thread is about: the proposal in force, if that is not what it began with. */
  const threadTitle = (thread) => (thread.in_force ? `${thread.state === "converged" ? "Agreed on" : "Now proposed"}: ${thread.in_force.map((each) => each.text).join(" / ")}` : thread.title);
  const KINDS = { task: (row) => row.text, claim: (row) => row.paths.join(" "), thread: threadTitle, node: (row) => row.text, commit: (row) => row.subject, signal: (row) => row.text };
  /** A link that opens what an id names; the id alone if that is not on the page. */
  const reference = (kind, key) => {
    const row = page.model[kind].get(key);
    if (!row) return [id(cut(key, 60)), " (not on this page)"];
    const words_ = cut(KINDS[kind](row), 70) || key;
    return [kind === "signal" ? link(words_, () => page.open("thread", row.thread, key)) : opens(kind, key, words_)];
  };
  const listed = (kind, ids) => ids.slice(0, 50).map((key) => el("li", {}, ...reference(kind, key), ...(kind === "task" && page.model.task.has(key) ? [" ", taskState(page.model.task.get(key))] : []), ...(kind === "node" && page.model.node.has(key) ? nodeState(page.model.node.get(key)) : []), ...(kind === "claim" && page.model.claim.has(key) ? [" ", claimState(page.model.claim.get(key))] : [])));

  const RULES = { gate: "the gate", "checkpoint-gate": "the gate for checkpoints", claim: "a claim", "claim-release": "the claim of somebody else" };
  /** Say which rule somebody passed. */
  const passing = (row) => [name(row.agent), row.rule === "claim-release" ? " released " : " passed ", Object.hasOwn(RULES, row.rule) ? RULES[row.rule] : row.rule,
    row.past ? `: ${cut(row.past, 120)}` : row.wu ? ` of ${row.wu}` : "", row.signals.length ? ` although ${blocking(row.signals)}` : ""];
  /** Say why signals closed a gate: information can only be unread. */
  const blocking = (ids) => {
    const isNotice = ids.every((key) => { const each = page.model.signal.get(key); return each?.intent === "INFO" && !each.ack; });
    return `${count(ids.length, "signal was", "signals were")} ${isNotice ? "unread" : "unread or unanswered"}`;
  };

  /** Say which paths of two claims overlap, who came first, and whether they knew of one another. */
  const contest = ({ sides: [first, second], overlaps, why }) => {
    const paths = overlaps.flatMap(([a, b], at) => [at ? ", " : "", ...(a === b ? [el("code", {}, a)] : [el("code", {}, a), " and ", el("code", {}, b)])]);
    const who = (side) => [opens("claim", side.claim, page.model.name(side.agent)), " (", page.time(side.at, true), ")"];
    const reasons = {
      unseen: ["Neither had seen the other’s claim: their clones had not synced. By the clocks ", ...who(first), " was first, then ", ...who(second), "."],
      behind: [...who(first), " was first; ", ...who(second), " knew that, and claimed all the same."],
      both: [...who(first), " and ", ...who(second), " each name the other’s claim as earlier."],
    };
    return [overlaps.length ? ["Both cover ", ...paths, ". "] : "They may cover the same paths. ", ...(Object.hasOwn(reasons, why) ? reasons[why] : [])].flat();
  };

  /** Say who waits for whom to do what. */
  const wait = (row) => [el("b", {}, name(row.waiter)), " waits for ", el("b", {}, ...(row.owes ? [row.owes, ...(row.others ?? []).slice(0, 2)].flatMap((each, at) => [at ? ", " : "", name(each)]) : [cut(row.anyone, 60) || "anybody"]), row.others?.length > 2 ? ` and ${row.others.length - 2} more` : ""), ` ${cut(row.to_do, 60)}`];

  page.words = { isFailed, waiting, waited, until, lease, unit, nodeKind, nodeState, name, names, whom, threadState, taskState, claimState, facts, opens, id, text, stands, mismatch, threadTitle, reference, listed, passing, contest, wait };
})();
