// Server-sent events by fetch: as the answer to a POST, and under a header of our own, neither of which EventSource can do.
import { translate } from "./messages.js";
import { asSentence, joinSentences, sentencesLoaded, translateSentence } from "./sentences.js";

/** A problem that the server reported, or a failed connection. */
export class Problem extends Error {
  /** `retryAfter`: milliseconds to wait before the same request is worth another try. */
  constructor({ title, detail, advice, status, errors, retryAfter = 0 }) {
    super(detail || title);
    const said = { title: translateSentence(title), detail: translateSentence(detail), advice: translateSentence(advice) };
    Object.assign(this, said, { status, errors, retryAfter });
  }

  /** What happened, and what to do about it. */
  get sentence() {
    return joinSentences(this.detail || asSentence(this.title), this.advice);
  }

  /** Whether the same request may succeed a little later. */
  get isPassing() {
    return this.status === undefined || [502, 503, 504].includes(this.status);
  }
}

const LOST = {
  title: translate("The connection to Quarry was lost"),
  detail: "",
  advice: translate("Check your network, then try again. If that does not help, tell whoever runs Quarry."),
};

/**
 * Yields {id, name, data} until the stream ends.
 * Throws Problem; an AbortError if `signal` ended it.
 */
export async function* stream(url, body, signal) {
  yield* eventsOf(await answerTo("POST", url, { body, signal }), signal);
}

/** As `stream`, of a GET, for what follows behind the event with the number `after`; an event `gone` where nothing ever will. */
export async function* resume(url, after, signal, opened) {
  const response = await answerTo("GET", url, { signal, headers: { "Last-Event-ID": String(after) } });
  opened();
  if (response.status === 204) yield { id: after, name: "gone", data: {} };
  else yield* eventsOf(response, signal);
}

async function* eventsOf(response, signal) {
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

/** The JSON answer to a request; null where it has none. Throws Problem. */
export async function send(method, url, body, signal) {
  const response = await answerTo(method, url, { body, signal });
  return response.status === 204 ? null : response.json();
}

/** What shows the server that a page of this session sends the request. */
const csrfToken = () => document.querySelector('meta[name="csrf-token"]')?.content ?? "";

async function answerTo(method, url, { body, signal, headers = {} }) {
  const response = await fetch(url, {
    method,
    headers: {
      "Content-Type": "application/json",
      Accept: "text/event-stream, application/json",
      "X-CSRF-Token": csrfToken(),
      ...headers,
    },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal,
  }).catch((error) => {
    throw signal?.aborted ? error : new Problem(LOST);
  });
  await sentencesLoaded;
  if (!response.ok) {
    const retryAfter = 1_000 * (Number(response.headers.get("Retry-After")) || 0);
    throw new Problem({ ...(await problemOf(response)), status: response.status, retryAfter });
  }
  return response;
}

async function problemOf(response) {
  try {
    const problem = await response.json();
    const errors = (problem.errors ?? []).map(({ where, message }) => translate("{name}: {state}", { name: where, state: translateSentence(message) }));
    return { ...problem, detail: joinSentences(problem.detail, ...errors) };
  } catch {
    return { title: translate("Quarry answered with status {status}", { status: response.status }), detail: "" };
  }
}

function eventOf(block) {
  let name = "message";
  let id = 0;
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    else if (line.startsWith("id:")) id = Number(line.slice(3));
    else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
  }
  return data.length ? { id, name, data: JSON.parse(data.join("\n")) } : null;
}
