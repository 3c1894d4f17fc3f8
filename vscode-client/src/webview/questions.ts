/** The questions that wait, with their answers. Nothing here takes the focus, and no Allow works at once. */

import type { FromView, ShownQuestion } from "../view/messages";
import { diffBlock } from "./diff";
import { button, element, folded } from "./dom";

const GUARD_MILLISECONDS = 400; // a press that comes sooner was meant for what stood there before

export class Questions {
  private shown = "";
  private since = 0;

  constructor(
    private readonly root: HTMLElement,
    private readonly send: (message: FromView) => void,
    private readonly announce: (text: string) => void,
  ) {}

  show(questions: readonly ShownQuestion[]): void {
    const ids = questions.map(({ id }) => id).join(" ");
    if (ids === this.shown) {
      return;
    }
    const isNew = questions.some(({ id }) => !this.shown.split(" ").includes(id));
    this.shown = ids;
    this.since = performance.now();
    const focused = document.activeElement instanceof HTMLElement ? document.activeElement.dataset.key : undefined;
    this.root.replaceChildren(...questions.map((question) => this.card(question)));
    if (focused !== undefined) {
      this.root.querySelector<HTMLElement>(`[data-key="${CSS.escape(focused)}"]`)?.focus();
    }
    const [first] = questions;
    if (isNew && first !== undefined) {
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
            button("Allow in This Session", allow("session"), { class: "secondary", "data-key": `session ${id}` }),
            button(`Always Allow ${rule}`, allow("always"), { class: "secondary", "data-key": `always ${id}` }),
          ];
    return element(
      "article",
      { class: "question", "aria-label": `Allow ${tool}: ${target}?` },
      element("p", {}, "Allow ", element("code", {}, tool), ` ${target}?`),
      element("p", { class: "hint" }, reason),
      ...(diff === null ? [] : [folded(`diff ${id}`, ["Change"], [diffBlock(diff)], true)]),
      element(
        "div",
        { class: "bar wrap" },
        button(look, () => this.send({ type: "showChange", id }), { class: "secondary", "data-key": `show ${id}` }),
        button("Allow", allow("once"), { "data-key": `allow ${id}` }),
        ...remembered,
        button("Deny", deny, { class: "secondary", "data-key": `deny ${id}` }),
      ),
      feedback,
    );
  }
}
