"use strict";
/* What of the timeline is in view: the overview above it, zoom and pan, and its size. */
(() => {
  const page = window.gitmemPage;
  const view = page.timelineView;
  const { state, later, draw } = view;
  const SECOND = 1e3;
  let parts = null;
  let sized = "";

  /* The overview: how many signals when, and the part in view as a selection that can be dragged. */
  let brush = null;
  let brushing = false;
  const HEIGHT = 46;
  const drawBars = () => {
    const wide = state.width - state.gutter; // not of the whole box: its scroll bar takes some
    const bins = new Array(Math.max(1, Math.floor(wide / 4))).fill(0);
    const [low, high] = state.all;
    for (const { at: when } of state.kept.signals) {
      const place = Math.floor(((when - low) / (high - low)) * bins.length);
      if (place >= 0 && place < bins.length) bins[place] += 1;
    }
    const top = Math.max(1, ...bins);
    const bar = (n, place) => (n ? `M${state.gutter + place * 4},${HEIGHT}v${-Math.max(2, Math.sqrt(n / top) * (HEIGHT - 6))}h3v${HEIGHT}z` : "");
    d3.select(parts.overview).selectAll("path").data([bins.map(bar).join("")]).join((enter) => enter.insert("path", "g").attr("class", "bar")).attr("d", (d) => d);
  };
  const drawOverview = () => {
    const scale = d3.scaleLinear(state.all, [state.gutter, state.width]);
    brush = d3.brushX().extent([[state.gutter, 0], [state.width, HEIGHT]]).on("brush end", (event) => {
      if (!event.sourceEvent || brushing) return;
      setView(event.selection ? event.selection.map(scale.invert) : state.all);
    });
    state.overviewScale = scale;
    d3.select(parts.overview).selectAll("g").data([0]).join("g").call(brush);
  };
  const drawBrush = () => {
    if (!brush) return;
    brushing = true;
    d3.select(parts.overview).select("g").call(brush.move, state.view.map(state.overviewScale).map((px) => Math.max(state.gutter, Math.min(state.width, px))));
    brushing = false;
  };

  /* Panning and zooming by pointer, wheel and fingers are d3's; what is in view is a transform of the whole. */
  const whole = () => d3.scaleLinear(state.all, [state.gutter, state.width]);
  const zoom = d3.zoom()
    .filter((event) => !event.button && (event.type !== "wheel" || event.ctrlKey || event.metaKey))
    .on("zoom", (event) => {
      if (!event.sourceEvent) return;
      state.view = event.transform.rescaleX(whole()).domain();
      if (event.sourceEvent.type === "mousemove") parts.box.scrollTop -= event.sourceEvent.movementY;
      later();
    });
  const syncZoom = () => {
    const area = [[state.gutter, 0], [state.width, state.height]];
    const [low, high] = state.all;
    const k = (high - low) / (state.view[1] - state.view[0]);
    zoom.extent(area).translateExtent(area).scaleExtent([1, Math.max(1, (high - low) / SECOND)]);
    zoom.transform(d3.select(parts.canvas), d3.zoomIdentity.translate(state.gutter - k * whole()(state.view[0]), 0).scale(k));
  };
  const setView = ([from, to]) => {
    const [low, high] = state.all;
    const span = Math.min(high - low, Math.max(SECOND, to - from));
    const start = Math.min(high - span, Math.max(low, (from + to) / 2 - span / 2));
    state.view = [start, start + span];
    syncZoom();
    later();
  };
  const zoomAt = (when_, factor) => setView([when_ - (when_ - state.view[0]) / factor, when_ + (state.view[1] - when_) / factor]);
  const pan = (part) => {
    const by = (state.view[1] - state.view[0]) * part;
    setView([state.view[0] + by, state.view[1] + by]);
  };

  /** Fit the canvas to its box and to what is laid out, and draw. */
  const resize = () => {
    if (!parts || !parts.box.clientWidth) return;
    const ratio = window.devicePixelRatio || 1;
    const tall = Math.min(state.plan.height, Math.max(240, Math.round(window.innerHeight * 0.68)));
    parts.spacer.style.height = `${Math.max(0, state.plan.height - tall)}px`;
    parts.box.style.height = `${tall + 2}px`;
    const size = [parts.box.clientWidth, tall, ratio, ...state.all].join(" ");
    if (size !== sized) {
      sized = size;
      [state.width, state.height] = [parts.box.clientWidth, tall];
      state.gutter = state.width < 560 ? 84 : 150;
      Object.assign(parts.canvas, { width: Math.round(state.width * ratio), height: Math.round(tall * ratio) });
      Object.assign(parts.canvas.style, { width: `${state.width}px`, height: `${tall}px` });
      syncZoom();
      drawOverview();
    }
    drawBars();
    draw();
  };

  const drawing = view.use;
  Object.assign(view, { zoom, setView, zoomAt, pan, resize, drawBrush, use: (made) => drawing((parts = made)) });
})();
