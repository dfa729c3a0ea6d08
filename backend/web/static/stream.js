// Server-sent events as the answer to a POST, which EventSource cannot do.

/** A problem that the server reported, or a failed connection. */
export class Problem extends Error {
  constructor({ title, detail, advice, status, errors }) {
    super(detail || title);
    Object.assign(this, { title, detail, advice, status, errors });
  }

  /** What happened, and what to do about it. */
  get sentence() {
    return [this.detail || this.title, this.advice].filter(Boolean).join(" ");
  }
}

const LOST = {
  title: "The connection to Quarry was lost",
  detail: "",
  advice: "Check that quarry serve is running, then try again.",
};

/**
 * Yields {name, data} until the stream ends.
 * Throws Problem; an AbortError if `signal` ended it.
 */
export async function* stream(url, body, signal) {
  const response = await request(url, body, signal);
  if (!response.ok) throw new Problem(await problemOf(response));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read().catch((error) => {
      throw signal?.aborted ? error : new Problem(LOST);
    });
    if (done) return;
    const blocks = (rest + value).replace(/\r\n?/g, "\n").split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const event = eventOf(block);
      if (event) yield event;
    }
  }
}

/** The JSON answer to a request. Throws Problem. */
export async function send(method, url, body) {
  const response = await request(url, body, undefined, method);
  if (!response.ok) throw new Problem(await problemOf(response));
  return response.json();
}

/** What shows the server that a page of this session sends the request. */
const csrfToken = () => document.querySelector('meta[name="csrf-token"]')?.content ?? "";

async function request(url, body, signal, method = "POST") {
  try {
    return await fetch(url, {
      method,
      headers: {
        "Content-Type": "application/json",
        Accept: "text/event-stream, application/json",
        "X-CSRF-Token": csrfToken(),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
  } catch (error) {
    throw signal?.aborted ? error : new Problem(LOST);
  }
}

async function problemOf(response) {
  try {
    const problem = await response.json();
    const errors = (problem.errors ?? []).map((error) => `${error.where}: ${error.message}`);
    return { ...problem, detail: [problem.detail, ...errors].filter(Boolean).join(" ") };
  } catch {
    return { title: `Quarry answered with status ${response.status}`, detail: "" };
  }
}

function eventOf(block) {
  let name = "message";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
  }
  return data.length ? { name, data: JSON.parse(data.join("\n")) } : null;
}
