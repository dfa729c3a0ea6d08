// What is looked up for a question, and what was sent to whom on the web, as steps: [key, text, kind] of each.
import { listed, pluralize, translate } from "./messages.js";
import { translateSentence } from "./sentences.js";
import { replaceControls } from "./text.js";

const joined = (texts) => texts.map(replaceControls).join(" · ");

export function plannedSteps({ knowledge, web, pages }) {
  const steps = [];
  if (knowledge.use === "searched") steps.push(["plan-knowledge", translate("Looked up in company knowledge: {queries}", { queries: joined(knowledge.queries) })]);
  if (knowledge.use === "not_needed") steps.push(["plan-knowledge", translate("Company knowledge is not needed")]);
  if (web.use === "searched") steps.push(["plan-web", translate("Looked up on the web: {queries}", { queries: joined(web.queries) })]);
  if (web.use === "not_needed") steps.push(["plan-web", translate("The web is not needed")]);
  if (pages.length) steps.push(["plan-pages", translate("Pages to read: {pages}", { pages: joined(pages) })]);
  return steps;
}

export function searchedSteps({ query, receivers, answered_by, withheld, results, problem }, number) {
  const values = { query: replaceControls(query), receivers: listed(receivers.map(replaceControls)) };
  const steps = [];
  if (receivers.length) steps.push([`sent-${number}`, translate("“{query}” was sent to {receivers}", values)]);
  else if (!problem) steps.push([`sent-${number}`, translate("“{query}” was searched before; nothing was sent", values)]);
  if (receivers.length > 1 && answered_by) steps.push([`answered-${number}`, translate("{provider} answered", { provider: replaceControls(answered_by) })]);
  if (withheld.length) steps.push([`withheld-${number}`, translate("Kept out of what was sent: {terms}", { terms: joined(withheld) })]);
  if (problem) steps.push([`lost-web-${number}`, translate("Done without the web: {reason}", { reason: replaceControls(translateSentence(problem)) }), "lost"]);
  else steps.push([`results-${number}`, pluralize(results.length, "Found {number} page on the web", "Found {number} pages on the web")]);
  return steps;
}

export function readSteps({ pages }) {
  return pages.map(({ url, title, problem }) => {
    if (!problem) return [`page ${url}`, translate("Read {page}", { page: joined([title || url]) })];
    const values = { page: replaceControls(url), reason: replaceControls(translateSentence(problem)) };
    return [`page ${url}`, translate("{page} was not read: {reason}", values), "lost"];
  });
}
