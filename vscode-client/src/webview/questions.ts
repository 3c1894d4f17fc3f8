/** The questions that wait, with their answers. Nothing here takes the focus, and no Allow works at once. */

import type { FromView, ShownQuestion } from "../view/messages";
import { diffBlock } from "./diff";
import { button, element, folded } from "./dom";

const GUARD_MILLISECONDS = 400; // a press that comes sooner was meant for what stood there before

export class Questions {
  private readonly cards = new Map<string, HTMLElement>();
  private since = 0;

  constructor(
    private readonly root: HTMLElement,
    private readonly send: (message: FromView) => void,
    private readonly announce: (text: string) => void,
  ) {}

  /** Show these; a card that stays is left as it is, with what was typed into it. */
  show(questions: readonly ShownQuestion[]): void {
    const fresh = questions.filter(({ id }) => !this.cards.has(id));
    const gone = [...this.cards.keys()].filter((id) => !questions.some((question) => question.id === id));
    if (fresh.length === 0 && gone.length === 0) {
      return;
    }
    this.since = performance.now();
    for (const id of gone) {
      this.cards.get(id)?.remove();
      this.cards.delete(id);
    }
    for (const question of fresh) {
      const card = this.card(question);
      this.cards.set(question.id, card);
      this.root.append(card);
    }
    const [first] = fresh;
    if (first !== undefined) {
      this.announce(`The agent asks: ${first.tool} ${first.target}. ${questions.length} to approve.`);
    }
  }

  private card(question: ShownQuestion): HTMLElement {
    const { id, tool, target, reason, rule, diff } = question;
    const feedback = element("input", {
      type: "text",
      placeholder: "Why not? (optional)",
      "aria-label": "Feedback with a denial",
    });
    const allow = (scope: "once" | "session" | "always") => (): void => {
      if (performance.now() - this.since >= GUARD_MILLISECONDS) {
        this.send({ type: "answer", id, decision: "allow", scope });
      }
    };
    const deny = (): void => {
      const text = feedback.value.trim();
      this.send({ type: "answer", id, decision: "deny", ...(text === "" ? {} : { feedback: text }) });
    };
    const look = diff === null ? "Show Details" : "Show Change";
    const remembered =
      rule === null
        ? []
        : [
            button("Allow in This Session", allow("session"), { class: "secondary" }),
            button(`Always Allow ${rule}`, allow("always"), { class: "secondary" }),
          ];
    return element(
      "article",
      { class: "question", "aria-label": `Allow ${tool}: ${target}?` },
      element("p", {}, "Allow ", element("code", {}, tool), ` ${target}?`),
      element("p", { class: "hint" }, reason),
      element(
        "div",
        { class: "bar wrap" },
        button(look, () => this.send({ type: "showChange", id }), { class: "secondary" }),
        button("Allow", allow("once")),
        ...remembered,
        button("Deny", deny, { class: "secondary" }),
      ),
      feedback,
      ...(diff === null ? [] : [folded(`diff ${id}`, ["Change"], [diffBlock(diff)], true)]),
    );
  }
}
