"use strict";
/* The memory: a graph of relations, the list that says the same, and the history of a node. */
(() => {
  const page = window.gitmemPage;
  const { el, cut, badge, count, table, colour, say } = page;
  const { name, facts, opens, reference, id: idOf, text, nodeKind: kind, nodeState: state } = page.words;
  const time = (ms) => page.time(ms, true);
  const LIST = 100;
  const LETTER = 10; // the size of labels on the screen
  const HISTORY = 200;
  const TICKS = 140;
  const SLICE = 14; // milliseconds of the layout at a time, so that the page answers meanwhile
  const SHAPES = ["ellipse", "round-rectangle", "diamond", "triangle", "hexagon", "star", "pentagon", "rhomboid"];
  let parts = null;
  let cy = null;
  let laid = null; // the positions of nodes, kept over updates
  let run = 0;
  let chosen = null;
  let kept = [];

  const kindsOf = (model) => [...new Set(model.data.nodes.map(kind))].sort();
  const fresh = (node) => Math.max(0, Math.min(1, Number(node.decay) || 0));
  const isCurrent = (node) => !node.stale && !node.superseded_by;
  /** Say how fresh a node is; what is stale or superseded is not fresh, however young. */
  const freshness = (node) => (node.stale ? "stale" : node.superseded_by ? "superseded" : `${Math.round(fresh(node) * 100)} %`);
  const shade = () => d3.interpolateRgb(colour("faded"), colour("fresh"));
  const style = () => [
    { selector: "node", style: { "background-color": "data(colour)", shape: "data(shape)", width: "data(size)", height: "data(size)", label: "data(label)", "font-size": "data(letter)",
      color: colour("ink"), "text-outline-color": colour("paper"), "text-outline-width": "data(outline)", "text-valign": "bottom", "text-margin-y": 3, "text-wrap": "wrap", "line-height": 1.2, "border-width": 1, "border-color": colour("quiet") } },
    { selector: "node.stale", style: { "border-color": colour("bad"), "border-width": 3, "border-style": "dashed" } },
    { selector: "node.closed", style: { "background-opacity": 0.25 } },
    { selector: "edge", style: { width: 1.2, "line-color": colour("line"), "target-arrow-color": colour("quiet"), "target-arrow-shape": "vee", "arrow-scale": 0.8, "curve-style": "straight" } },
    { selector: "edge.supersedes", style: { width: 2.4, "line-color": colour("warn"), "target-arrow-color": colour("warn"), "target-arrow-shape": "triangle" } },
    { selector: "edge.summarizes", style: { width: 1.6, "line-style": "dotted", "line-color": colour("quiet") } },
    { selector: "node.named", style: { label: "data(full)", "z-index": 8, "text-background-color": colour("paper"), "text-background-opacity": 0.9, "text-background-padding": 2 } },
    { selector: ".dim", style: { opacity: 0.12 } },
    { selector: "node.chosen", style: { "border-color": colour("focus"), "border-width": 5, "border-style": "solid", "z-index": 9 } },
    { selector: "node.stale.chosen", style: { "border-style": "dashed" } },
    { selector: "edge.chosen", style: { "z-compound-depth": "top",  "line-color": colour("focus"), "target-arrow-color": colour("focus"), width: 2.4, label: "data(type)", "font-size": 9, color: colour("ink"), "text-background-color": colour("paper"), "text-background-opacity": 0.9 } },
    { selector: "edge.summarizes.chosen", style: { label: "" } }, // of many that all say the same
  ];

  const elements = (model) => {
    const types = kindsOf(model);
    const tint = shade();
    const degree = (id) => (model.out.get(id)?.length ?? 0) + (model.in.get(id)?.length ?? 0);
    const key = new Map(model.data.nodes.map((each, place) => [each.id, `n${place}`])); // ids of peers may be anything
    const nodes = model.data.nodes.map((each) => ({
      data: { id: key.get(each.id), label: "", letter: LETTER, outline: 2, text: cut(each.text, 80) || kind(each), full: page.labelOf(cut(each.text, 80) || kind(each)), colour: tint(isCurrent(each) ? fresh(each) : 0), shape: SHAPES[types.indexOf(kind(each)) % SHAPES.length], size: 14 + Math.min(22, 4 * Math.sqrt(degree(each.id))) },
      classes: [each.stale ? "stale" : "", each.status === "active" ? "" : "closed"].filter(Boolean),
      scratch: { _node: each.id },
    }));
    const edges = model.data.relations.filter((each) => key.has(each.from) && key.has(each.to)).map((each, place) => ({
      data: { id: `e${place}`, source: key.get(each.from), target: key.get(each.to), type: cut(each.type, 40) }, classes: each.supersedes ? ["supersedes"] : each.type === "summarizes" ? ["summarizes"] : [],
    }));
    return { nodes, edges, key };
  };

  /** Place the nodes by forces, a slice of time at a time; those without relations stand in rows below. */
  const place = (all, done) => {
    const mine = (run += 1);
    const linked = new Set(all.edges.flatMap(({ data }) => [data.source, data.target]));
    const points = all.nodes.filter(({ data }) => linked.has(data.id)).map(({ data, scratch }) => ({ id: data.id, ...laid?.get(scratch._node) }));
    const links = all.edges.filter(({ data }) => data.source !== data.target).map(({ data }) => ({ source: data.source, target: data.target }));
    const few = points.length < 150; // there is room for their labels
    const forces = d3.forceSimulation(points).stop()
      .force("link", d3.forceLink(links).id((each) => each.id).distance(few ? 130 : 55).strength(0.5))
      .force("charge", d3.forceManyBody().strength(few ? -700 : -130).distanceMax(few ? 900 : 500))
      .force("x", d3.forceX().strength(0.06)).force("y", d3.forceY().strength(0.09)).force("apart", d3.forceCollide(few ? 58 : 20));
    const finish = () => {
      const found = new Map(points.map((each) => [each.id, { x: each.x, y: each.y }]));
      const low = Math.max(0, ...points.map((each) => each.y)) + 90;
      const [left, right] = points.length ? d3.extent(points, (each) => each.x) : [0, 0];
      const single = all.nodes.filter(({ data }) => !linked.has(data.id));
      const wide = Math.max(right - left, Math.sqrt(single.length) * (single.length < 150 ? 160 : 90));
      const cell = single.length < 150 ? 124 : 62; // there is room for their labels
      const columns = Math.max(1, Math.floor(wide / cell));
      single.forEach(({ data }, at) => found.set(data.id, { x: (left + right - wide) / 2 + (at % columns) * cell + cell / 2, y: low + Math.floor(at / columns) * 64 }));
      done(found);
    };
    const ticks = laid ? 20 : TICKS;
    forces.alphaDecay(1 - 0.001 ** (1 / ticks));
    let left = points.length ? ticks : 0;
    const slice = () => {
      if (mine !== run) return;
      const until = performance.now() + SLICE;
      while (left > 0 && performance.now() < until) { forces.tick(); left -= 1; }
      if (left > 0) { parts.busy.textContent = `Placing the nodes: ${Math.round((1 - left / ticks) * 100)} %`; setTimeout(slice); }
      else { parts.busy.textContent = ""; finish(); }
    };
    slice();
  };

  /** Bring all nodes into view; a few are not blown up to fill it. */
  const fitAll = () => {
    cy.fit(undefined, 48); // the labels of those at the edge need room, too
    if (cy.zoom() > 1.3) cy.zoom({ level: 1.3, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } });
  };
  /** Give the nodes labels of the same size at any zoom: the closer, the more have room. */
  const label = () => {
    if (!cy) return;
    const letter = LETTER / cy.zoom();
    const nodes = cy.nodes().map((each) => ({ id: each.id(), text: each.data("text"), size: each.data("size"), ...each.position() }));
    const shown = page.labels(nodes, letter);
    cy.batch(() => cy.nodes().forEach((each) => { each.data({ label: shown.get(each.id()), letter, outline: letter / 5 }); }));
  };
  let labelling = 0;
  const labelLater = () => { clearTimeout(labelling); labelling = setTimeout(label, 120); };
  const draw = () => {
    const all = elements(page.model);
    place(all, (found) => {
      laid = new Map(all.nodes.map(({ data, scratch }) => [scratch._node, found.get(data.id)]));
      for (const each of all.nodes) each.position = { ...found.get(each.data.id) };
      const before = cy && { zoom: cy.zoom(), pan: cy.pan() };
      cy?.destroy();
      cy = cytoscape({ container: parts.graph, elements: [...all.nodes, ...all.edges], style: style(), layout: { name: "preset" }, minZoom: 0.03, maxZoom: 4,
        hideEdgesOnViewport: all.edges.length > 3000, textureOnViewport: all.nodes.length > 800, boxSelectionEnabled: false, autoungrabify: true, userZoomingEnabled: true });
      cy.on("tap", "node", (event) => page.sections.memory.show(event.target.scratch("_node")));
      cy.on("mouseover mouseout", "node", ({ type, target }) => target.toggleClass("named", type === "mouseover" || target.hasClass("chosen")));
      cy.key = all.key;
      if (before) cy.viewport(before);
      else fitAll();
      label();
      cy.on("zoom", labelLater);
      mark();
      page.sections.memory.cy = cy;
    });
  };
  /** Fade what the filters leave out, and mark the chosen node with its neighbours. */
  const mark = (move) => {
    if (!cy) return;
    const ids = new Set(kept.map((each) => cy.key.get(each.id)));
    const all = kept.length === page.model.data.nodes.length;
    cy.batch(() => {
      cy.elements(".chosen, .named").removeClass("chosen named");
      cy.nodes().forEach((each) => { each.toggleClass("dim", !all && !ids.has(each.id())); });
      cy.edges().forEach((each) => { each.toggleClass("dim", !all && !(ids.has(each.data("source")) && ids.has(each.data("target")))); });
      const node = chosen !== null && cy.key.has(chosen) ? cy.getElementById(cy.key.get(chosen)) : null;
      if (node?.nonempty()) node.addClass("named").union(node.connectedEdges()).addClass("chosen");
      if (node?.nonempty() && move) cy.animate({ center: { eles: node }, zoom: Math.max(cy.zoom(), 0.8) }, { duration: matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 200 });
    });
  };
  let marking = 0;
  const markLater = () => { clearTimeout(marking); marking = setTimeout(mark, 120); };

  const decay = (node) => (isCurrent(node) ? meter(node) : [`${freshness(node)}; without that, by its age: ${Math.round(fresh(node) * 100)} %`]);
  const meter = (node) => [el("meter", { min: 0, max: 1, value: fresh(node).toFixed(3), "aria-hidden": "true" }), ` ${Math.round(fresh(node) * 100)} %`];

  /** The nodes that replaced one, to the last; peers can make them go in a circle. */
  const successors = (model, node) => {
    const found = [];
    for (let next = model.node.get(node.superseded_by); next && next !== node && !found.includes(next) && found.length < 20; next = model.node.get(next.superseded_by)) found.push(next);
    return found;
  };

  const related = (rows, end) => rows.slice(0, 60).map((row) => {
    const other = page.model.node.get(row[end]);
    return el("li", {}, badge(row.type, row.supersedes ? "warn" : ""), end === "to" ? " → " : " ← ", other ? [opens("node", other.id, cut(other.text, 80) || other.id), ...state(other)] : [idOf(cut(row[end], 60)), " (not on this page)"]);
  });
  const detail = (node) => {
    const { model } = page;
    const [out, into] = [model.out.get(node.id) ?? [], model.in.get(node.id) ?? []];
    const later = successors(model, node);
    const history = node.history ?? [];
    return [
      el("h2", { id: "node-title", tabindex: "-1" }, badge(kind(node)), ...state(node)), text(node),
      node.stale ? el("p", {}, "Not to be relied on as it is: ", cut(node.stale, 300), ".", ...(node.stale_by ?? []).flatMap((key, at) => [at ? ", " : " Last changed by ", ...reference("commit", key)])) : "",
      later.length ? el("p", {}, "Superseded by ", ...later.flatMap((each, at) => [at ? ", then " : "", opens("node", each.id, cut(each.text, 60) || each.id)])) : "",
      facts([["Fresh", decay(node)], ["By", name(node.agent)], ["Made", time(node.at)], ["Changed", node.updated && time(node.updated)], ["Kept", node.lifecycle], ["Work unit", node.wu],
        ["Tags", node.tags.join(", ")], ["Paths", node.paths.length ? el("ul", { class: "plain" }, node.paths.map((path) => el("li", {}, el("code", {}, path)))) : ""], ["Id", idOf(node.id)]]),
      out.length || into.length ? el("h3", {}, "Relations") : "", out.length + into.length ? el("ul", { class: "plain" }, related(out, "to"), related(into, "from")) : "",
      el("h3", {}, "History"),
      table("History", [["When", (row) => time(row.at), "nowrap"], ["By", (row) => name(row.agent)], ["What", (row) => row.what]], history, { first: HISTORY, hideCaption: true, empty: "No change is on this page." }),
    ].flat();
  };

  const list = (most = LIST) => {
    const button = (node) => el("button", { type: "button", tabindex: "-1", "aria-current": node.id === chosen ? "true" : undefined, onclick: () => page.sections.memory.show(node.id) },
      badge(kind(node)), ...state(node), ` ${cut(node.text, 110) || node.id} `, el("span", { class: "quiet" }, isCurrent(node) ? `${freshness(node)} fresh`.replace(" %", "\u00a0%") : ""));
    const shown = kept.slice(0, most).map((node) => { const made = button(node); made.node = node.id; return made; });
    const rest = kept.length - shown.length;
    if (rest > 0) shown.push(el("button", { type: "button", tabindex: "-1", onclick: () => { list(most + 300); parts.list.children[most]?.focus(); } }, `Show ${Math.min(300, rest)} more of ${page.number.format(rest)}`));
    parts.list.replaceChildren(...shown);
    if (!shown.length) parts.list.append(el("p", { class: "quiet" }, page.filtered() ? "No node fits the filters." : "No nodes yet: gitmem mem create writes one."));
    (shown.find((each) => each.node === chosen) ?? shown[0])?.setAttribute("tabindex", "0");
  };
  const KEYS = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };
  const rove = (event) => {
    if (!Object.hasOwn(KEYS, event.key)) return;
    const all = [...parts.list.querySelectorAll("button")];
    const next = all[Math.max(0, Math.min(all.length - 1, all.indexOf(document.activeElement) + KEYS[event.key]))];
    if (!next) return;
    event.preventDefault();
    all.forEach((each) => each.setAttribute("tabindex", each === next ? "0" : "-1"));
    next.focus();
  };

  const build = (section) => {
    parts = { list: el("div", { class: "nodes", role: "group", "aria-label": "Nodes, the last changed first; arrow keys move", onkeydown: rove }),
      graph: el("div", { class: "graph", role: "img", "aria-label": "Graph of the nodes and their relations; the list beside it says the same" }),
      node: el("div", { class: "node", "aria-live": "off" }), busy: el("span", { class: "quiet", role: "status" }), found: el("span", { class: "quiet" }), types: page.legend(), table: el("div") };
    const fit = (words, label, onclick) => el("button", { type: "button", "aria-label": label, title: label, onclick }, words);
    parts.fold = el("details", { class: "fold", ontoggle: () => fillTable() }, el("summary", {}, "Nodes as a table"), parts.table);
    section.append(
      el("div", { class: "tools" }, fit("−", "Zoom out", () => cy?.zoom({ level: cy.zoom() / 1.4, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } })),
        fit("+", "Zoom in", () => cy?.zoom({ level: cy.zoom() * 1.4, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } })), fit("All", "Show all nodes", () => cy && fitAll()), parts.found, parts.busy, parts.types),
      el("div", { class: "memory" }, el("div", { class: "list" }, parts.list), parts.graph, parts.node), parts.fold);
    parts.node.append(el("p", { class: "quiet" }, "Choose a node in the list or in the graph: its text, its relations and its history are shown here."));
  };
  const fillTable = (most) => {
    parts.table.replaceChildren();
    if (!parts.fold.open && !most) return;
    parts.table.append(table("Nodes", [["Node", (row) => opens("node", row.id, cut(row.text, 140) || row.id), "wide"], ["Type", (row) => kind(row)], ["State", (row) => (isCurrent(row) || row.status !== "active" ? [row.status, ...state({ ...row, status: "active" })] : state(row))], ["Fresh", freshness, "num"],
      ["By", (row) => name(row.agent)], ["Work unit", (row) => row.wu ?? "–"], ["Paths", (row) => cut(row.paths.join(", "), 80) || "–"], ["Changed", (row) => page.time(row.updated ?? row.at), "nowrap"]], kept, { first: most ?? 40, hideCaption: true }));
  };

  page.sections.memory = {
    build,
    /** Show what the filters leave; with an id, show that node. `tell` says it to who can't see it. */
    show(key, move, tell = true) {
      const { model } = page;
      if (typeof key === "string") {
        if (!model.node.has(key)) return;
        chosen = key;
        parts.node.replaceChildren(...detail(model.node.get(key)).filter((each) => each !== ""));
        parts.node.scrollTop = 0;
        list();
        mark(move);
        if (move) parts.node.querySelector("h2").focus();
        else if (tell) say(`Node: ${cut(model.node.get(key).text, 160)}`);
        return;
      }
      kept = page.kept.nodes(model).sort((a, b) => (b.updated ?? b.at) - (a.updated ?? a.at));
      parts.found.textContent = `${count(kept.length, "node")}, ${count(kept.filter((each) => each.stale).length, "stale", "stale")}`;
      list();
      fillTable();
      if (key === true || !cy) {
        const glyphs = ["●", "■", "◆", "▲", "⬢", "★", "⬟", "▰"];
        parts.types.lastChild.replaceChildren(...kindsOf(model).slice(0, 12).map((type, at) => el("span", {}, `${glyphs[at % glyphs.length]} ${cut(type, 30)}`)),
          el("span", {}, "faded ", el("span", { class: "decay" }), " fresh"), el("span", {}, el("span", { class: "swatch stale" }), "dashed red outline: stale"), el("span", {}, el("span", { class: "swatch thick" }), "thick arrow: supersedes"), el("span", {}, el("span", { class: "swatch dots" }), "dotted: summarizes"));
        draw();
        if (chosen !== null && model.node.has(chosen)) parts.node.replaceChildren(...detail(model.node.get(chosen)).filter((each) => each !== ""));
        if (chosen === null && kept.length) this.show(kept[0].id, false, false);
      } else markLater();
    },
    restyle: () => { if (cy) draw(); },
    print: () => fillTable(1000),
    shown: () => [kept.length, page.model.data.nodes.length],
  };
})();
