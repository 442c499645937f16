"use strict";
/* Start: read the data, index them, show the first section. The others are built when they are opened. */
(() => {
  const page = window.gitmemPage;
  const { el, count, say, icon } = page;
  const NAMES = ["timeline", "board", "memory", "figures"];
  const $ = (id) => document.getElementById(id);
  const built = new Set();
  const dirty = new Set(NAMES);
  let current = "timeline";
  page.timing = {};

  /** Undo base64 and gzip; `page_file.py` writes them. */
  const unpack = async (packed) => {
    const raw = atob(packed.trim());
    const bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i += 1) bytes[i] = raw.charCodeAt(i);
    return JSON.parse(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text());
  };
  const fetched = async (source) => {
    const answer = await fetch(source, { cache: "no-store", credentials: "same-origin" });
    if (!answer.ok) throw new Error(answer.status === 401 || answer.status === 404 ? "its link has expired, open the one that gitmem view --serve has printed" : `the server answered ${answer.status}`);
    page.served.token = answer.headers.get("X-Gitmem-Token");
    return answer.json();
  };

  const refresh = (name, fresh) => {
    const section = page.sections[name];
    if (!built.has(name)) {
      section.build($(name));
      built.add(name);
    }
    dirty.delete(name);
    section.show(fresh || undefined);
  };
  const tell = () => {
    const shown = page.sections[current].shown?.() ?? [page.kept.signals(page.model).length, page.model.signals.length]; // the timeline may not have the filter yet
    const found = current === "memory" ? [] : page.sections[current].found?.() ?? [];
    const also = page.filter.text ? found.filter(([n]) => n).map(([n, ...words]) => `, ${count(n, ...words)}`).join("") : "";
    $("shown").textContent = current === "memory" ? `${page.number.format(shown[0])} of ${count(shown[1], "node")}` : `${page.number.format(shown[0])} of ${count(shown[1], "signal")}${also}`;
  };

  /** Show a section. */
  page.select = (name) => {
    if (!NAMES.includes(name)) return;
    page.sections[current].leave?.();
    current = name;
    for (const each of NAMES) {
      $(each).hidden = each !== name;
      $(`tab-${each}`).setAttribute("aria-selected", String(each === name));
      $(`tab-${each}`).tabIndex = each === name ? 0 : -1;
    }
    $("filter-intents").hidden = name !== "timeline";
    $("filters").hidden = name === "figures";
    $("waits").hidden = name === "memory" || name === "figures";
    if (dirty.has(name)) refresh(name, true);
    else if (name === "timeline") page.timelineView.resize();
    tell();
    try { history.replaceState(null, "", `#${name}`); } catch { /* some browsers refuse it for files */ }
  };
  /** Apply a change of the filters to the section in view; the others follow when they are opened. */
  const apply = () => {
    for (const name of NAMES) if (name !== "figures") dirty.add(name);
    page.showWaits();
    if (current !== "figures") {
      dirty.delete(current);
      page.sections[current].show();
    }
    tell();
  };
  page.setFilter = (change) => {
    Object.assign(page.filter, change);
    $("filter-agent").value = page.filter.agent;
    $("filter-wu").value = page.filter.wu;
    apply();
  };

  const options = (select, rows, value) => {
    const first = select.options[0];
    select.replaceChildren(first, ...rows.map(([key, words]) => el("option", { value: key }, words)));
    select.value = rows.some(([key]) => key === value) ? value : "";
    return select.value;
  };
  const OMITTED = { agents: "agent", sessions: "session", signals: "signal", threads: "thread", tasks: "task", claims: "claim", commits: "commit", branches: ["branch", "branches"], nodes: "node", relations: "relation", passed: ["rule passed with a reason", "rules passed with a reason"],
    gates: "gate", waits: "wait", contested: ["contest of claims", "contests of claims"], mismatches: ["mismatch", "mismatches"], overlaps: ["overlap of branches", "overlaps of branches"] };
  const heads = (data) => {
    $("repository").textContent = `${data.repository || "Repository"} · gitmem`;
    document.title = `${page.cut(data.repository, 80) || "Repository"} · gitmem`;
    const limits = Object.entries(data.filters ?? {}).map(([name, value]) => (name === "since" ? `since ${page.when(value)}` : `${name} ${value}`));
    const zone = page.utc ? "UTC" : page.localZone();
    $("zone").parentNode.hidden = page.localZone() === "UTC" && !page.utc;
    $("zone").options[0].textContent = `local (${page.localZone()})`;
    $("made").textContent = [`${page.when(data.made, true)} (${zone})`, `${count(data.signals.length, "signal")}, ${count(data.agents.length, "agent")}`, ...limits].join(" · ");
    const left = Object.entries(data.omitted ?? {}).filter(([, n]) => n).map(([name, n]) => count(n, ...[OMITTED[name] ?? name].flat()));
    $("notes").replaceChildren(...[...(left.length ? [`Not on this page, the oldest: ${left.join(", ")}. Narrow it with gitmem view --since, --wu or --agent.`] : []), ...data.notes].flatMap((note) => [note, el("br")]));
    $("generator").textContent = `Written by ${data.generator || "gitmem"}. Times are ${zone === "UTC" ? "in UTC" : `local (${zone})`}.`;
    page.filter.agent = options($("filter-agent"), data.agents.map((each) => [each.id, page.cut(each.name, 60)]).sort((a, b) => a[1].localeCompare(b[1])), page.filter.agent);
    page.filter.wu = options($("filter-wu"), page.model.units.map((each) => [each, page.cut(each, 60)]), page.filter.wu);
  };

  /** Show new data in place of the old: filters, view, open thread and focus stay. */
  page.update = (data) => {
    if (!data || data.format !== "gitmem.page/1") throw new Error(`the data have the format ${page.cut(data?.format, 40) || "(none)"}; this page reads gitmem.page/1`);
    const before = page.data && page.model.signals.length;
    page.data = data;
    page.model = page.index(data);
    heads(data);
    for (const name of NAMES) dirty.add(name);
    page.showWaits();
    refresh(current, true);
    tell();
    page.tellWaits();
    page.refreshDetail();
    if (before !== undefined && data.signals.length > before) say(`${count(data.signals.length - before, "new signal")}`);
  };

  const follow = (source, events) => {
    let running = false;
    let again = false;
    const reload = async () => {
      if (running) { again = true; return; }
      running = true;
      try {
        page.update(await fetched(source));
        $("state").textContent = "";
      } catch (error) {
        $("state").textContent = `The server does not answer (${error.message}). What is shown is of ${page.data ? page.when(page.data.made) : "no time"}; it is read again when the server is back.`;
      }
      running = false;
      if (again) { again = false; reload(); }
    };
    const stream = new EventSource(events);
    stream.onmessage = reload;
    stream.addEventListener("changed", reload);
    stream.onerror = () => { $("state").textContent = "The connection to the server is lost; trying again. Start it with gitmem view --serve."; };
    stream.onopen = () => { if (page.data) reload(); };
    page.reload = reload;
    return reload();
  };

  const theme = () => {
    const store = (change) => { try { return change(window.localStorage); } catch { return null; } }; // refused to files by some browsers
    const use = (value) => {
      if (value) document.documentElement.dataset.theme = value;
      else delete document.documentElement.dataset.theme;
      document.querySelectorAll("canvas.icon").forEach((each) => each.redraw());
      for (const name of NAMES) if (built.has(name)) {
        if (name === current) page.sections[name].restyle?.();
        else dirty.add(name);
      }
      if (built.has("timeline")) page.timelineView.readColours();
    };
    const saved = store((storage) => storage.getItem("gitmem-theme"));
    $("theme").value = saved === "dark" || saved === "light" ? saved : "";
    $("theme").addEventListener("change", () => {
      store((storage) => storage.setItem("gitmem-theme", $("theme").value));
      use($("theme").value);
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => use($("theme").value));
    use($("theme").value);
  };

  const listen = () => {
    for (const name of NAMES) {
      $(name).dataset.title = $(`tab-${name}`).textContent;
      $(`tab-${name}`).addEventListener("click", () => page.select(name));
    }
    document.querySelector("[role=tablist]").addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      const next = NAMES[(NAMES.indexOf(current) + by + NAMES.length) % NAMES.length];
      page.select(next);
      $(`tab-${next}`).focus();
    });
    for (const intent of page.INTENTS) {
      const box = el("input", { type: "checkbox", checked: true, value: intent });
      box.addEventListener("change", () => {
        page.filter.intents[box.checked ? "add" : "delete"](intent);
        apply();
      });
      $("filter-intents").append(el("label", {}, box, icon(intent), intent.toLowerCase()));
    }
    $("zone").addEventListener("change", () => {
      page.useZone($("zone").value || undefined);
      if (page.data) page.update(page.data);
    });
    $("filter-more").addEventListener("click", () => $("filter-more").setAttribute("aria-expanded", String($("filter-more").getAttribute("aria-expanded") !== "true")));
    $("filter-text").addEventListener("input", () => { page.filter.text = $("filter-text").value.trim().toLowerCase(); apply(); });
    $("filter-agent").addEventListener("change", () => { page.filter.agent = $("filter-agent").value; apply(); });
    $("filter-wu").addEventListener("change", () => { page.filter.wu = $("filter-wu").value; apply(); });
    $("filters").addEventListener("submit", (event) => event.preventDefault());
    $("filters").addEventListener("reset", () => {
      Object.assign(page.filter, { agent: "", wu: "", text: "", intents: new Set(page.INTENTS) });
      requestAnimationFrame(apply);
    });
    document.addEventListener("keydown", (event) => {
      const typing = /^(INPUT|SELECT|TEXTAREA)$/u.test(event.target.tagName);
      if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey || $("detail").open) return;
      event.preventDefault();
      $("filter-text").focus();
    });
    page.listenWaits();
    const dialog = $("detail");
    dialog.addEventListener("close", page.closed);
    dialog.addEventListener("click", (event) => { if (event.target === dialog && event.clientX < dialog.getBoundingClientRect().left) dialog.close(); });
    let unfolded = []; // paper has what is folded away
    window.addEventListener("beforeprint", () => {
      if (!page.data) return;
      for (const name of NAMES) {
        if (dirty.has(name)) refresh(name, true);
        page.sections[name].print?.();
      }
      unfolded.push(...document.querySelectorAll("main details:not([open])"));
      for (const each of unfolded) each.open = true;
    });
    window.addEventListener("afterprint", () => {
      for (const each of unfolded) each.open = false;
      unfolded = [];
    });
  };

  const start = async () => {
    listen();
    theme();
    const block = $("data");
    try {
      if (!block) throw new Error("it has no data");
      if (block.dataset.source) page.served = { answer: block.dataset.answer };
      if (block.dataset.source) await follow(block.dataset.source, block.dataset.events);
      else page.update(block.type === "application/json" ? JSON.parse(block.textContent) : await unpack(block.textContent));
      if (page.data) $("state").textContent = page.data.signals.length || page.data.nodes.length ? "" : "The log has no signals yet. gitmem signal sends one; then write this page again.";
      const wanted = location.hash.slice(1);
      if (wanted !== "timeline" && NAMES.includes(wanted)) page.select(wanted);
    } catch (error) {
      $("state").textContent = `This page can't show its data: ${error.message}. Write it again: gitmem view`;
    }
    requestAnimationFrame(() => {
      const channel = new MessageChannel(); // its message comes after the frame
      channel.port1.onmessage = () => {
        page.timing.painted = performance.now();
        if (page.data) (window.requestIdleCallback ?? setTimeout)(() => page.warm(page.model));
      };
      channel.port2.postMessage(0);
    });
  };
  start();
})();
