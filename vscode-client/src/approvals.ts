/**
 * The questions that wait for the human's answer. Whoever shows them (notification, diff, view, status bar) reads them
 * here and answers here; the first answer wins, and a question that the server withdraws is gone everywhere.
 */

import { EventEmitter, type CancellationToken, type Disposable } from "vscode";

import type { ApprovalAnswer, ApprovalRequest } from "./protocol";

export interface Question {
  readonly request: ApprovalRequest;
  /** Parts that were taken (true) or left out (false), by their number. */
  readonly decided: ReadonlyMap<number, boolean>;
}

interface Waiting extends Question {
  readonly resolve: (answer: ApprovalAnswer | null) => void;
}

export class Approvals implements Disposable {
  private readonly waiting = new Map<string, Waiting>();
  private readonly changed = new EventEmitter<void>();
  /** What waits is another than before. */
  readonly onDidChange = this.changed.event;

  /** All questions, the oldest first. */
  get questions(): readonly Question[] {
    return [...this.waiting.values()];
  }

  find(id: string): Question | undefined {
    return this.waiting.get(id);
  }

  /** Put a question; resolves with the human's answer, or with null once the server does not want it any more. */
  ask(request: ApprovalRequest, token: CancellationToken): Promise<ApprovalAnswer | null> {
    return new Promise((resolve) => {
      const decided = new Map(Object.entries(request.decided).map(([part, taken]) => [Number(part), taken]));
      const withdrawn = token.onCancellationRequested(() => this.settle(request.id, null));
      this.waiting.set(request.id, {
        request,
        decided,
        resolve: (answer) => {
          withdrawn.dispose();
          resolve(answer);
        },
      });
      this.changed.fire();
      if (token.isCancellationRequested) {
        this.settle(request.id, null);
      }
    });
  }

  /** Answer a question; false where it does not wait any more. What was left out of a change stays out. */
  answer(id: string, answer: ApprovalAnswer): boolean {
    const question = this.waiting.get(id);
    if (question === undefined) {
      return false;
    }
    return this.settle(id, answer.hunks === undefined ? withoutLeftOut(question, answer) : answer);
  }

  /** Take one part of a change or leave it out; the last part answers. */
  decide(id: string, part: number, taken: boolean): boolean {
    const question = this.waiting.get(id);
    if (question === undefined || part < 0 || part >= question.request.hunks.length) {
      return false;
    }
    const decided = new Map(question.decided).set(part, taken);
    this.waiting.set(id, { ...question, decided });
    if (decided.size === question.request.hunks.length) {
      return this.answer(id, { decision: "allow" });
    }
    this.changed.fire();
    return true;
  }

  /** The server is gone: nothing waits any more. */
  clear(): void {
    for (const id of [...this.waiting.keys()]) {
      this.settle(id, null);
    }
  }

  dispose(): void {
    this.clear();
    this.changed.dispose();
  }

  private settle(id: string, answer: ApprovalAnswer | null): boolean {
    const question = this.waiting.get(id);
    this.waiting.delete(id);
    question?.resolve(answer);
    if (question !== undefined) {
      this.changed.fire();
    }
    return question !== undefined;
  }
}

function withoutLeftOut(question: Question, answer: ApprovalAnswer): ApprovalAnswer {
  const leftOut = [...question.decided].filter(([, taken]) => !taken).map(([part]) => part);
  if (answer.decision === "deny" || leftOut.length === 0) {
    return answer;
  }
  const kept = question.request.hunks.map((_, part) => part).filter((part) => !leftOut.includes(part));
  return kept.length === 0 ? { decision: "deny" } : { ...answer, hunks: kept };
}
