// Server-sent events over fetch, so that the token travels in a header. EventSource cannot do that.

// Stream keeps one stream open and begins again where it broke off. Handlers are called in the
// order of the events: on(event, data) for each, state("connecting" | "live" | "over", reason).
export class Stream {
  constructor(api, { on, state }) {
    this.api = api;
    this.on = on;
    this.state = state;
    this.last = "";
    this.scopes = [];
    this.run = 0;
  }

  // watch opens the stream, or opens it anew to get the messages of other scopes.
  watch(...scopes) {
    this.scopes = scopes;
    this.run++;
    this.abort?.abort();
    this.loop(this.run);
  }

  // close ends the stream for good.
  close() {
    this.run++;
    this.abort?.abort();
  }

  async loop(run) {
    for (let wait = 500; run === this.run; wait = Math.min(2 * wait, 8000)) {
      try {
        const began = await this.once(run);
        if (began) wait = 250;
      } catch (error) {
        if (run !== this.run) return;
        if (error.status === 401 || error.status === 404) {
          this.state("over", error);
          return;
        }
      }
      if (run !== this.run) return;
      this.state("connecting");
      await new Promise((done) => setTimeout(done, wait * (0.7 + 0.6 * Math.random())));
    }
  }

  async once(run) {
    this.abort = new AbortController();
    const headers = { Authorization: `Bearer ${this.api.token}`, Accept: "text/event-stream" };
    if (this.last) headers["Last-Event-ID"] = this.last;
    const query = this.scopes.length ? `?messages=${this.scopes.map(encodeURIComponent).join(",")}` : "";
    const answer = await this.api.fetch(`${this.api.base}/events${query}`, { headers, signal: this.abort.signal });
    if (!answer.ok) throw Object.assign(new Error(`HTTP ${answer.status}`), { status: answer.status });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done || run !== this.run) return true;
      text += value;
      for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
        this.event(text.slice(0, end));
      }
    }
  }

  event(block) {
    let name = "message", data = "", id;
    for (const line of block.split("\n")) {
      if (line.startsWith("event:")) name = line.slice(6).trim();
      else if (line.startsWith("data:")) data += line.slice(5).trimStart();
      else if (line.startsWith("id:")) id = line.slice(3).trim();
    }
    if (name === "hello") this.state("live");
    if (data) this.on(name, JSON.parse(data));
    if (id !== undefined) this.last = id;
  }
}
