"use strict";
/* What the person answers in a page that a server shows: a dialog says what is answered and as whom, the server records it. */
(() => {
  const page = window.gitmemPage;
  const { el, cut, count, say } = page;
  const { name, text } = page.words;
  // The button, what is asked for, and the words that are proposed; null where none are needed.
  const WAYS = {
    agree: ["Agree", "Your words", "agreed"], reject: ["Reject", "Why you reject it", ""], reply: ["Reply", "Your words", ""],
    take: ["Take the task", "", null], refuse: ["Refuse it", "Why you refuse it", ""], accept: ["Accept the result", "", null], answer: ["Answer", "Your answer", ""],
  };
  const box = () => document.getElementById("answer");

  const post = async (form) => {
    let answer;
    try {
      answer = await fetch(page.served.answer, { method: "POST", cache: "no-store", credentials: "same-origin", body: JSON.stringify(form),
        headers: { "Content-Type": "application/json", "X-Gitmem-Token": page.served.token ?? "" } });
    } catch {
      throw new Error("The server does not answer. Whether this was recorded shows when it is back: gitmem view --serve.");
    }
    const said = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Error([said.error?.message ?? `The server answered ${answer.status}.`, ...(said.error?.next ?? [])].join(" "));
    return said;
  };

  /** What is answered, whole as the page has it; null if something of it is not here. */
  const whole = (row) => {
    if (!row.thread) return page.model.task.get(row.id) ?? null;
    const signal = page.model.signal.get(row.id);
    return signal && !signal.cut ? signal : null;
  };
  const ask = (way, row) => {
    const [word, label, proposed] = WAYS[way];
    const what = whole(row);
    const words = proposed === null ? null : el("textarea", { id: "answer-text", rows: 4, maxlength: 8000, required: way !== "refuse" });
    if (words) words.value = proposed;
    const wrong = el("p", { class: "wrong", role: "alert" });
    const record = el("button", { type: "submit", class: "main" }, word);
    const form = el("form", { class: "inner" },
      el("p", {}, name(page.data.you.agent), " to ", name(row.waiter)),
      el("blockquote", {}, row.question ? text({ text: row.question }) : text(what), what.result ? [el("h3", {}, "Result"), text({ text: what.result })] : ""),
      words && el("label", { for: "answer-text" }, label), words, wrong,
      el("p", { class: "ways" }, record, el("button", { type: "button", onclick: () => box().close() }, "Cancel")));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      record.disabled = true;
      wrong.textContent = "";
      try {
        const { warnings } = await post({ do: way, id: row.id, since: row.since ?? 0, text: words?.value ?? "" });
        box().close();
        say(["Recorded.", ...warnings].join(" "));
        document.getElementById("state").textContent = warnings.join(" ");
        await page.reload();
      } catch (error) {
        wrong.textContent = error.message;
      }
      record.disabled = false;
    });
    box().replaceChildren(el("div", { class: "head" }, el("h2", { id: "answer-title" }, `${word}, as ${cut(page.model.name(page.data.you.agent), 60)}`)), form);
    box().showModal();
    words?.select();
  };

  /** The buttons that end a waiting; none where the commands have to do: of a file, and of a text that is not whole here. */
  page.ways = (row) => {
    if (!page.served || !row.yours || !row.ways.length || !whole(row)) return null;
    return row.ways.filter((way) => Object.hasOwn(WAYS, way)).map((way) => el("button", { type: "button", class: way === row.ways[0] ? "main" : "", onclick: () => ask(way, row) }, WAYS[way][0]));
  };
  /** The button that replies to any signal of another one. */
  page.reply = (signal) => {
    const you = page.served && page.data.you?.agent;
    if (!you || signal.from === you || signal.cut || (page.model.owed.get(signal.id) ?? []).some((row) => row.yours)) return "";
    return page.link("Reply", () => ask("reply", { id: signal.id, thread: signal.thread, waiter: signal.from, since: 0 }));
  };
})();
