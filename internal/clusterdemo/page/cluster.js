// Shows what the cluster looks like, a few times a second. What is unknown is shown as a dash.
const buttons = {
  running: [["kill", "Kill"], ["pause", "Pause"]],
  paused: [["resume", "Resume"], ["kill", "Kill"]],
  killed: [["start", "Start"]],
  ended: [["start", "Start"]],
};

function element(name, text, className = "") {
  const e = document.createElement(name);
  e.textContent = text;
  e.className = className;
  return e;
}

async function press(node, action) {
  await fetch(`/nodes/${node}/${action}`, { method: "POST" });
  await show();
}

const shown = new Map(); // condition of each node, so that buttons stay while nothing changes

function showNodes(nodes) {
  const parent = document.getElementById("nodes");
  for (const n of nodes) {
    let card = parent.querySelector(`[data-node="${n.name}"]`);
    if (!card) {
      card = element("div", "", "node");
      card.dataset.node = n.name;
      card.append(element("h2", n.name), element("div", ""), element("p", ""));
      parent.append(card);
    }
    card.children[1].textContent = `${n.condition}, owns ${n.owns}`;
    if (shown.get(n.name) === n.condition) continue;
    shown.set(n.name, n.condition);
    card.dataset.condition = n.condition;
    card.children[2].replaceChildren(...(buttons[n.condition] ?? []).map(([action, text]) => {
      const b = element("button", text);
      b.addEventListener("click", () => press(n.name, action));
      b.setAttribute("aria-label", `${text} ${n.name}`);
      return b;
    }));
  }
}

const unknown = () => element("td", "\u2013", "unknown");

function showSpaces(spaces) {
  document.getElementById("spaces").replaceChildren(...spaces.map((s) => {
    const row = document.createElement("tr");
    row.append(
      element("td", s.id),
      s.owners.length ? element("td", s.owners.join(", ")) : unknown(),
      element("td", s.acked),
      s.unread === undefined ? unknown() : element("td", s.unread),
      s.dot === undefined ? unknown() : element("td", s.dot ? "\u25cf" : "off", s.dot ? "dot" : ""),
      s.waitsMs > 500 ? element("td", `${(s.waitsMs / 1000).toFixed(1)} s`, "waits") : element("td", ""),
      element("td", `${s.longestS.toFixed(1)} s`),
    );
    return row;
  }));
}

async function show() {
  const view = await (await fetch("/view")).json();
  showNodes(view.nodes);
  showSpaces(view.spaces ?? []);
  const wrong = (view.spaces ?? []).reduce((n, s) => n + s.wrong, 0);
  const verdict = document.getElementById("verdict");
  verdict.textContent = wrong ? `${wrong} counts were wrong` : "Every count so far was right.";
  verdict.className = wrong ? "wrong" : "";
}

async function loop() {
  try {
    await show();
  } catch {
    document.getElementById("verdict").textContent = "The demo has ended.";
  }
  setTimeout(loop, 300);
}

loop();
