/** Questions as notifications: one at a time, never answered by its disappearance, the first button harmless. */

import { commands, window, type Disposable } from "vscode";

import type { Approvals, Question } from "./approvals";
import type { ApprovalAnswer, ApprovalRequest } from "./protocol";
import { plain } from "./text";

const [ALLOW, MORE, DENY] = ["Allow", "More…", "Deny"];
const ANSWERS: ReadonlyMap<string, ApprovalAnswer> = new Map([
  [ALLOW, { decision: "allow" }],
  [DENY, { decision: "deny" }],
]);
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

  private async ask(question: Question): Promise<void> {
    const { request } = question;
    this.shown = request.id;
    const look = request.diff === null ? "Show Details" : "Show Change";
    const since = this.now();
    const title = await window.showWarningMessage(questionText(request), look, ALLOW, MORE, DENY);
    const isHasty = title === ALLOW && this.now() - since < GUARD_MILLISECONDS;
    const answer = title === MORE ? await chooseAnswer(request) : ANSWERS.get(title ?? "");
    if (this.approvals.find(request.id) === undefined) {
      return; // withdrawn, or answered elsewhere
    }
    if (isHasty) {
      void this.ask(question);
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

/** The answers that a notification has no room for; undefined where none is chosen. */
async function chooseAnswer(request: ApprovalRequest): Promise<ApprovalAnswer | undefined> {
  const answers = new Map<string, ApprovalAnswer | undefined>();
  if (request.rule !== null) {
    answers.set("Allow in This Session", { decision: "allow", scope: "session" });
    answers.set(`Always Allow ${request.rule}`, { decision: "allow", scope: "always" });
  }
  answers.set("Deny with Feedback…", undefined);
  const title = plain(`${request.tool}: ${request.target}`);
  const chosen = await window.showQuickPick([...answers.keys()], { title, placeHolder: "What shall the agent hear?" });
  if (chosen === undefined) {
    return undefined;
  }
  return answers.get(chosen) ?? denyWithFeedback();
}

/** Ask what the agent shall do instead; undefined where that is left. */
export async function denyWithFeedback(): Promise<ApprovalAnswer | undefined> {
  const prompt = "What shall the agent do instead?";
  const feedback = await window.showInputBox({ title: "Agent: Reject with Feedback", prompt, ignoreFocusOut: true });
  return feedback === undefined ? undefined : { decision: "deny", feedback };
}
