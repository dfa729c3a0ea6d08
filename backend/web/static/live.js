// An answer while it is being written: enough of Markdown to be read, made of nodes alone.
// What stays is the server's own rendering, which takes its place at the end.
import { replaceControls, make } from "./text.js";

const ITEM = /^\s*(?:[-*+]|\d{1,9}[.)])\s+/;
const INLINE = /\\([!-/:-@[-`{-~])|\[\[(\d+)\]\]\([^)\s]*\)|!?\[([^[\]\n]+)\]\([^)\s]*\)|`([^`\n]+)`|\*\*(?=\S)([^*\n]+?)\*\*/g;

export class Live {
  #root;
  #chip;
  #text = "";
  #drawn = [];
  #frame = 0;

  /** `chip` makes the element for a citation's number. */
  constructor(root, chip) {
    this.#root = root;
    this.#chip = chip;
  }

  get text() {
    return this.#text;
  }

  add(text) {
    this.#text += text;
    this.#frame ||= requestAnimationFrame(() => this.draw());
  }

  /** Only blocks that have changed are drawn anew: what was read stays where it is. */
  draw() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const blocks = cut(replaceControls(this.#text));
    blocks.forEach((block, at) => {
      if (this.#drawn[at] === block) return;
      const node = this.#block(block);
      if (this.#root.children[at]) this.#root.children[at].replaceWith(node);
      else this.#root.append(node);
      this.#drawn[at] = block;
    });
  }

  #block(block) {
    const lines = block.split("\n");
    if (block.startsWith("```")) {
      return make("pre", {}, make("code", {}, lines.slice(1).join("\n").replace(/\n?```\s*$/, "")));
    }
    if (lines.every((line) => ITEM.test(line))) {
      const items = lines.map((line) => make("li", {}, ...this.#inline(line.replace(ITEM, ""))));
      return make(/^\s*\d/.test(block) ? "ol" : "ul", {}, ...items);
    }
    const heading = /^#{1,6}\s+/.exec(block);
    if (heading) return make("h3", {}, ...this.#inline(block.slice(heading[0].length)));
    return make("p", {}, ...this.#inline(block));
  }

  #inline(text) {
    const nodes = [];
    let at = 0;
    for (const found of text.matchAll(INLINE)) {
      const [whole, escaped, number, label, code, strong] = found;
      nodes.push(text.slice(at, found.index));
      if (escaped) nodes.push(escaped);
      else if (number) nodes.push(this.#chip(Number(number)));
      else if (label) nodes.push(label);
      else if (code) nodes.push(make("code", {}, code));
      else nodes.push(make("strong", {}, ...this.#inline(strong)));
      at = found.index + whole.length;
    }
    return [...nodes, text.slice(at)];
  }
}

/** Blocks are apart by empty lines; within a fence those do not count. */
function cut(text) {
  const blocks = [[]];
  let fenced = false;
  for (const line of text.split("\n")) {
    const fence = line.startsWith("```");
    if (!fenced && (fence || !line.trim())) blocks.push([]);
    if (fenced || line.trim()) blocks.at(-1).push(line);
    if (fence) fenced = !fenced;
    if (fence && !fenced) blocks.push([]);
  }
  return blocks.filter((block) => block.length).map((block) => block.join("\n"));
}
