/** Questions as notifications: one at a time, never answered by its disappearance, the first button harmless. */

import { commands, window, type Disposable } from "vscode";

import type { Approvals, Question } from "./approvals";
import type { ApprovalAnswer, ApprovalRequest } from "./protocol";
import { plain } from "./text";

const GUARD_MILLISECONDS = 400; // an Allow that comes sooner was meant for something else

export class ApprovalNotifications implements Disposable {
  /** The question on screen. */
  private shown: string | undefined;
  private readonly dismissed = new Set<string>();
  private readonly subscription: Disposable;

  constructor(
    private readonly approvals: Approvals,
    private readonly show: (id: string) => Promise<unknown>,
    private readonly now: () => number = Date.now,
  ) {
    this.subscription = approvals.onDidChange(() => this.update());
  }

  dispose(): void {
    this.subscription.dispose();
  }

  private update(): void {
    const waiting = new Set(this.approvals.questions.map((question) => question.request.id));
    for (const id of this.dismissed) {
      if (!waiting.has(id)) {
        this.dismissed.delete(id);
      }
    }
    if (this.shown !== undefined && !waiting.has(this.shown)) {
      this.shown = undefined;
      void commands.executeCommand("notifications.hideToasts"); // a message cannot be taken back in another way
    }
    this.next();
  }

  private next(): void {
    const question = this.approvals.questions.find(({ request }) => !this.dismissed.has(request.id));
    if (this.shown === undefined && question !== undefined) {
      void this.ask(question);
    }
  }

  private async ask({ request }: Question): Promise<void> {
    this.shown = request.id;
    const answers = answersTo(request);
    const look = request.diff === null ? "Show Details" : "Show Change";
    const since = this.now();
    const title = await window.showWarningMessage(questionText(request), look, ...answers.keys());
    if (this.approvals.find(request.id) === undefined) {
      return; // withdrawn, or answered elsewhere
    }
    const answer = title === undefined ? undefined : answers.get(title);
    if (answer?.decision === "allow" && this.now() - since < GUARD_MILLISECONDS) {
      void this.ask({ request, decided: new Map() });
      return;
    }
    this.shown = undefined;
    if (answer !== undefined) {
      this.approvals.answer(request.id, answer);
      return;
    }
    this.dismissed.add(request.id);
    if (title === look) {
      await this.show(request.id);
    }
    this.next();
  }
}

/** The question in one line; the id keeps two alike apart, because VS Code merges equal messages. */
export function questionText(request: ApprovalRequest): string {
  return plain(`Allow ${request.tool}: ${request.target}? ${request.reason} [${request.id.slice(0, 8)}]`);
}

function answersTo(request: ApprovalRequest): ReadonlyMap<string, ApprovalAnswer> {
  const answers = new Map<string, ApprovalAnswer>([["Allow", { decision: "allow" }]]);
  if (request.rule !== null) {
    answers.set("Allow in This Session", { decision: "allow", scope: "session" });
    answers.set(`Always Allow ${request.rule}`, { decision: "allow", scope: "always" });
  }
  return answers.set("Deny", { decision: "deny" });
}
