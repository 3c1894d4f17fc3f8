/** The current session, kept as the extension tells it: what did not change stays as it is on the page. */

import type { Item, Turn } from "../items";
import type { ShownSession } from "../view/messages";
import { element } from "./dom";
import { endNode, itemNode, type Tools } from "./items";

const AT_END = 40; // pixels from the end within which the page follows what comes

export class Transcript {
  constructor(
    private readonly root: HTMLElement,
    private readonly tools: Tools,
  ) {}

  show(session: ShownSession | null): void {
    this.root.replaceChildren();
    if (session === null || (session.turns.length === 0 && session.history === "")) {
      this.root.append(
        element(
          "p",
          { class: "empty" },
          "Ask the agent to explain, change or test something. It asks before it changes a file or runs a command.",
        ),
      );
      return;
    }
    if (session.history !== "") {
      this.root.append(element("article", { class: "markdown" }, this.tools.markdown.render(session.history)));
    }
    for (const turn of session.turns) {
      this.root.append(this.turnNode(turn));
    }
    this.root.scrollTop = this.root.scrollHeight;
  }

  showTurn(turn: Turn): void {
    this.following(() => {
      const shown = this.find("turn", turn.id);
      const node = this.turnNode(turn);
      if (shown === undefined) {
        this.root.querySelector(".empty")?.remove();
        this.root.append(node);
      } else {
        shown.replaceWith(node);
      }
    });
  }

  showItems(turn: Turn, items: readonly Item[]): void {
    const shown = this.find("turn", turn.id);
    if (shown === undefined) {
      this.showTurn({ ...turn, items: [...items] });
      return;
    }
    this.following(() => {
      for (const item of items) {
        const node = itemNode(item, this.tools);
        const before = this.find("item", item.id);
        if (before === undefined) {
          shown.querySelector(":scope > .end")?.before(node);
        } else {
          before.replaceWith(node);
        }
      }
    });
  }

  private turnNode(turn: Turn): HTMLElement {
    const prompt = element("div", { class: "prompt" }, element("h2", { class: "unseen" }, "Prompt"), turn.prompt);
    const items = turn.items.map((item) => itemNode(item, this.tools));
    const head = turn.prompt === "" ? [] : [prompt];
    return element("article", { "data-turn": turn.id }, ...head, ...items, endNode(turn, this.tools));
  }

  private find(kind: "turn" | "item", id: string): Element | undefined {
    return this.root.querySelector(`[data-${kind}="${CSS.escape(id)}"]`) ?? undefined;
  }

  /** Change the page, and stay at its end if that was in sight. */
  private following(change: () => void): void {
    const { root } = this;
    const atEnd = root.scrollHeight - root.scrollTop - root.clientHeight < AT_END;
    change();
    if (atEnd) {
      root.scrollTop = root.scrollHeight;
    }
  }
}
