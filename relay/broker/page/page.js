// The diagnostics page: the token comes behind the # of the address and is never sent as part of it.
const token = location.hash.slice(1);
const at = (id) => document.getElementById(id);
const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };

async function call(path, body) {
  const init = body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers };
  const answer = await fetch(path, init);
  const doc = await answer.json();
  if (!answer.ok) throw new Error(doc.error.message);
  return doc;
}

const say = (text) => (at("state").textContent = text);
const act = (path, body = {}) => call(`/v1/unread/${path}`, body).catch((e) => say(e.message));
at("refresh").onclick = () => act("refresh");
at("retry").onclick = () => act("retry-sync");
at("all").onclick = () => act("mark-all-read");
at("form").onsubmit = (e) => {
  e.preventDefault();
  call(`/v1/channels/${encodeURIComponent(at("to").value)}/messages`, { text: at("text").value })
    .then(() => (at("text").value = ""))
    .catch((error) => say(error.message));
};

let stream = "";
let channels = [];
const snapshots = new Map();

function draw() {
  at("channels").replaceChildren(
    ...channels.map(({ id, name }) => {
      const s = snapshots.get(id);
      const row = document.createElement("tr");
      const cells = [name, s?.observedCount ?? "?", s?.attentionCount ?? "?", s?.coverage, s?.freshness, s?.manual];
      for (const text of cells) row.insertCell().textContent = text ?? "?";
      const read = document.createElement("button");
      read.textContent = "Mark read";
      read.onclick = () => act("mark-channel-read", { channelId: id });
      row.insertCell().append(read);
      return row;
    }),
  );
}

const take = {
  hello: (doc) => (stream = doc.stream),
  roster(list) {
    channels = list;
    at("to").replaceChildren(...list.map(({ id, name }) => new Option(name, id)));
    const targets = list.map(({ id }) => ({ kind: "channel", channelId: id }));
    void act("subscribe", { stream, targets });
    draw();
  },
  snapshots(list) {
    for (const { target, snapshot } of list) snapshots.set(target.channelId, snapshot);
    draw();
  },
  badge: (b) => (document.title = `${b.display ?? "?"} unread · Tidemark relay agent`),
  sync: (s) => say(`Sync: ${s.status}${s.error ? ` (${s.error})` : ""}`),
};

async function follow() {
  const answer = await fetch("/v1/unread/events", { headers });
  if (!answer.ok) throw new Error("the token is missing or wrong: open the address that the agent printed");
  let rest = "";
  for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) {
    const steps = (rest + chunk).split("\n\n");
    rest = steps.pop();
    for (const step of steps) {
      const [, name, data] = /^event: (\w+)\ndata: (.*)$/.exec(step);
      take[name]?.(JSON.parse(data));
    }
    at("diagnostics").textContent = JSON.stringify(await call("/v1/unread/diagnostics"), null, 2);
  }
}

for (;;) {
  await follow().catch((e) => say(e.message));
  snapshots.clear();
  draw();
  await new Promise((done) => setTimeout(done, 2000));
}
