// What kind of source a citation leads to, and where.
import { translate } from "./messages.js";
import { documentUrl, make, replaceControls } from "./text.js";

const NAMES = {
  url: translate("Web"),
  memory: translate("Memory"),
  research: translate("Earlier research"),
  file: translate("File"),
  image: translate("Picture"),
};

/** The name of its kind; of a page of the web its host as well. Documents of the index need none. */
export function kindName({ kind, link }) {
  const name = NAMES[kind] ?? "";
  const host = kind === "url" ? hostOf(link) : "";
  return host ? `${name} · ${host}` : name;
}

/** The host of a web address without `www`; nothing for what is none. */
export function hostOf(link) {
  const isWeb = /^https?:\/\//i.test(link ?? "") && URL.canParse(link);
  return isWeb ? replaceControls(new URL(link).host.replace(/^www\./, "")) : "";
}

/** A link to a source; what is of the web opens beside this page, without a referrer. */
export function sourceLink(source, attributes, ...children) {
  return make("a", { ...targetOf(source), ...attributes }, ...children);
}

/** Where a source is, for those who read a text that was copied: on the web, or its page in Quarry. */
export function addressOf({ section, span, ...source }) {
  const link = source.link?.trim() ?? "";
  if (/^(?:https?:\/\/|mailto:)\S/i.test(link)) return link;
  const { href } = targetOf(source);
  return href ? new URL(href, location.origin).href : "";
}

function targetOf({ kind, link, document_id, section, span }) {
  if (kind === "url") return hostOf(link) ? { href: link, target: "_blank", rel: "noopener noreferrer nofollow" } : {};
  if (kind === "memory") return { href: "/memories" };
  if (kind === "research") return { href: `/knowledge/${document_id.slice("research/".length)}` };
  return { href: documentUrl(document_id, section, span) };
}
