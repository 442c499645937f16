"use strict";

async function read() {
  const block = document.getElementById("data");
  if (block.dataset.source) {
    return (await fetch(block.dataset.source)).json();
  }
  const bytes = Uint8Array.from(atob(block.textContent), (each) => each.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

function show(data) {
  const names = new Map(data.agents.map((each) => [each.id, each.name]));
  const list = document.createElement("ol");
  for (const each of data.signals) {
    const item = document.createElement("li");
    item.textContent = `${names.get(each.from)}: ${each.intent} ${each.text}`;
    list.append(item);
  }
  const heading = document.createElement("h1");
  heading.textContent = data.repository;
  document.getElementById("page").replaceChildren(heading, list);
}

read().then(show);
