"use strict";
/* The labels of the graph: those that would cover one another, or another node, are shortened or left out until asked for. */
(() => {
  const page = window.gitmemPage;
  const { cut } = page;
  const WIDE = 22; // characters of a line
  const LINE = 1.2; // the height of a line; so all that follow are in sizes of a letter
  const MARGIN = 0.3;
  const CELL = 8; // of the grid in which collisions are looked for

  /** Break a text into at most two lines. */
  const lines = (text, most = 2) => {
    const found = [""];
    for (const word of cut(text, 60).split(" ")) {
      const last = found.length - 1;
      const longer = found[last] ? `${found[last]} ${word}` : word;
      if (longer.length <= WIDE || !found[last]) found[last] = longer;
      else found.push(word);
    }
    const shown = found.slice(0, most).map((line) => cut(line, WIDE));
    if (found.length > most) shown[most - 1] = `${shown[most - 1].slice(0, WIDE - 1).replace(/…$/u, "")}…`;
    return shown;
  };
  const measure = (() => {
    const to = document.createElement("canvas").getContext("2d");
    to.font = "10px system-ui, sans-serif";
    return (text) => to.measureText(text).width / 10;
  })();

  /** A set of boxes that says whether another one would cover one of them. */
  const boxes = (cell) => {
    const cells = new Map();
    const keys = ([x0, y0, x1, y1]) => {
      const found = [];
      for (let x = Math.floor(x0 / cell); x <= Math.floor(x1 / cell); x += 1)
        for (let y = Math.floor(y0 / cell); y <= Math.floor(y1 / cell); y += 1) found.push(`${x} ${y}`);
      return found;
    };
    return {
      add(box, owner) {
        for (const key of keys(box)) cells.set(key, [...(cells.get(key) ?? []), { box, owner }]);
      },
      hits: (box, owner) => keys(box).some((key) => (cells.get(key) ?? []).some((other) => other.owner !== owner
        && box[0] < other.box[2] && other.box[0] < box[2] && box[1] < other.box[3] && other.box[1] < box[3])),
    };
  };

  /**
   * Choose the labels of nodes, `{ id, text, x, y, size }`, for letters of a size: those of the largest nodes first.
   * Returns the label of each by its id; "" where there is no room.
   */
  page.labels = (nodes, letter) => {
    const taken = boxes(CELL * letter);
    for (const { id, x, y, size } of nodes) taken.add([x - size / 2, y - size / 2, x + size / 2, y + size / 2], id);
    const chosen = new Map();
    for (const { id, text, x, y, size } of nodes.toSorted((a, b) => b.size - a.size)) {
      const place = (shown) => {
        const wide = (Math.max(...shown.map(measure)) / 2 + MARGIN) * letter;
        const top = y + size / 2;
        return [x - wide, top, x + wide, top + (shown.length * LINE + MARGIN) * letter];
      };
      const fits = [lines(text), lines(text, 1), [cut(text, 12)]].find((shown) => !taken.hits(place(shown), id));
      if (fits) taken.add(place(fits), id);
      chosen.set(id, fits ? fits.join("\n") : "");
    }
    return chosen;
  };
  page.labelOf = (text) => lines(text).join("\n");
})();
