/**
 * Markdown as nodes. Safe by construction: the parser gives tokens, and only the elements named here are made of them,
 * without any attribute of the text's own. A link is a button that tells where it leads.
 */

import MarkdownIt, { type Token } from "markdown-it";

import { button, element } from "./dom";

const BLOCKS = new Set([
  "p",
  "h1",
  "h2",
  "h3",
  "h4",
  "h5",
  "h6",
  "ul",
  "ol",
  "li",
  "blockquote",
  "table",
  "thead",
  "tbody",
  "tr",
  "th",
  "td",
]);
const INLINES = new Set(["em", "strong", "s"]);
const MOST_CHARACTERS = 200_000;

export class Markdown {
  private readonly parser = new MarkdownIt({ html: false, linkify: false, breaks: false });

  constructor(private readonly openLink: (href: string) => void) {}

  render(text: string): DocumentFragment {
    const fragment = document.createDocumentFragment();
    this.append(fragment, this.parser.parse(text.slice(0, MOST_CHARACTERS), {}));
    if (text.length > MOST_CHARACTERS) {
      fragment.append(element("p", {}, "[cut]"));
    }
    return fragment;
  }

  private append(root: Node, tokens: readonly Token[]): void {
    const open: Node[] = [root];
    const top = (): Node => open.at(-1) ?? root;
    for (const token of tokens) {
      if (token.nesting === 1) {
        open.push(top().appendChild(this.opened(token)));
      } else if (token.nesting === -1) {
        if (open.length > 1) {
          open.pop();
        }
      } else {
        this.single(top(), token);
      }
    }
  }

  /** The element that a token opens; a plain one where it is not among those that are made. */
  private opened(token: Token): Node {
    if (token.type === "link_open") {
      const href = String(token.attrGet("href") ?? "");
      return button("", () => this.openLink(href), { class: "link", role: "link", title: href });
    }
    if (token.hidden) {
      return document.createDocumentFragment().appendChild(element("span"));
    }
    const name = token.tag as keyof HTMLElementTagNameMap;
    return BLOCKS.has(name) || INLINES.has(name) ? element(name) : element("span");
  }

  private single(parent: Node, token: Token): void {
    switch (token.type) {
      case "inline":
        this.append(parent, token.children ?? []);
        break;
      case "text":
      case "html_inline":
      case "html_block":
        parent.appendChild(document.createTextNode(token.content));
        break;
      case "code_inline":
        parent.appendChild(element("code", {}, token.content));
        break;
      case "fence":
      case "code_block":
        parent.appendChild(element("pre", { tabindex: "0" }, element("code", {}, token.content)));
        break;
      case "softbreak":
        parent.appendChild(document.createTextNode("\n"));
        break;
      case "hardbreak":
        parent.appendChild(element("br"));
        break;
      case "hr":
        parent.appendChild(element("hr"));
        break;
      case "image": // nothing is fetched
        parent.appendChild(document.createTextNode(`[${token.content}]`));
        break;
      default:
        parent.appendChild(document.createTextNode(token.content));
    }
  }
}
