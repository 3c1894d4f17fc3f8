/** Answers given where a change is looked at: in the title bar, above each part of it, and by key. */

import {
  CodeLens,
  EventEmitter,
  Range,
  languages,
  window,
  type CodeLensProvider,
  type Disposable,
  type TextDocument,
} from "vscode";

import type { Approvals, Question } from "./approvals";
import { CHANGE_SCHEME, questionAt, readChangeUri, type Changes } from "./changes";
import { denyWithFeedback } from "./notifications";
import type { Hunk } from "./protocol";

const GUARD_MILLISECONDS = 400; // an Accept that comes sooner was meant for what was there before

export class Review implements CodeLensProvider, Disposable {
  private readonly changed = new EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.changed.event;
  private readonly subscriptions: readonly Disposable[];

  constructor(
    private readonly approvals: Approvals,
    private readonly changes: Changes,
  ) {
    this.subscriptions = [
      languages.registerCodeLensProvider({ scheme: CHANGE_SCHEME }, this),
      approvals.onDidChange(() => this.changed.fire()),
    ];
  }

  dispose(): void {
    for (const each of [...this.subscriptions, this.changed]) {
      each.dispose();
    }
  }

  provideCodeLenses(document: TextDocument): CodeLens[] {
    const { id, side } = readChangeUri(document.uri);
    const question = this.approvals.find(id);
    if (question === undefined || side === "before") {
      return [];
    }
    return lenses(question, document.lineCount);
  }

  /** Accept what is looked at, or what an id names. */
  async accept(id = this.current()): Promise<void> {
    if (id !== undefined && this.isLookedAt(id)) {
      this.approvals.answer(id, { decision: "allow" });
      await this.next();
    }
  }

  async reject(id = this.current()): Promise<void> {
    if (id !== undefined) {
      this.approvals.answer(id, { decision: "deny" });
      await this.next();
    }
  }

  /** Reject, and tell the agent why. */
  async rejectWithFeedback(id = this.current()): Promise<void> {
    if (id === undefined) {
      return;
    }
    const answer = await denyWithFeedback();
    if (answer !== undefined) {
      this.approvals.answer(id, answer);
      await this.next();
    }
  }

  /** Take one part of a change, or leave it out. */
  async decide(id: string, part: number, taken: boolean): Promise<void> {
    if (!taken || this.isLookedAt(id)) {
      this.approvals.decide(id, part, taken);
      if (this.approvals.find(id) === undefined) {
        await this.next();
      }
    }
  }

  /** The part at the cursor. */
  async decideHere(taken: boolean): Promise<void> {
    const editor = window.activeTextEditor;
    const id = questionAt(editor?.document.uri);
    const hunks = id === undefined ? undefined : this.approvals.find(id)?.request.hunks;
    if (editor === undefined || id === undefined || hunks === undefined) {
      return;
    }
    const side = readChangeUri(editor.document.uri).side === "before" ? "before" : "after";
    const line = editor.selection.active.line;
    const part = hunks.findIndex((hunk) => hunk[side][0] <= line && line < Math.max(hunk[side][1], hunk[side][0] + 1));
    if (part >= 0) {
      await this.decide(id, part, taken);
    }
  }

  /** The question in the active editor. */
  private current(): string | undefined {
    return questionAt(window.activeTextEditor?.document.uri);
  }

  private isLookedAt(id: string): boolean {
    const time = this.changes.shownFor(id);
    return time === undefined || time >= GUARD_MILLISECONDS;
  }

  /** Go on to the next question, where one was answered in its editor. */
  private async next(): Promise<void> {
    const next = this.approvals.questions[0];
    if (next !== undefined) {
      await this.changes.show(next.request.id);
    }
  }
}

function lenses({ request, decided }: Question, lineCount: number): CodeLens[] {
  const { id, hunks } = request;
  const at = (line: number): Range => new Range(Math.min(line, lineCount - 1), 0, Math.min(line, lineCount - 1), 0);
  const whole = [
    lens(at(0), "$(check) Accept", "agentLsp.accept", id),
    lens(at(0), "$(close) Reject", "agentLsp.reject", id),
    lens(at(0), "$(comment) Reject with Feedback…", "agentLsp.rejectWithFeedback", id),
  ];
  if (hunks.length < 2) {
    return whole;
  }
  const parts = hunks.flatMap((hunk, part) => {
    const place = at(firstChangedLine(hunk));
    const which = `Part ${part + 1} of ${hunks.length}`;
    const taken = decided.get(part);
    return [
      lens(
        place,
        taken === true ? `$(pass-filled) ${which} Accepted` : `$(check) Accept ${which}`,
        "agentLsp.acceptPart",
        id,
        part,
      ),
      lens(
        place,
        taken === false ? `$(error) ${which} Rejected` : `$(close) Reject ${which}`,
        "agentLsp.rejectPart",
        id,
        part,
      ),
    ];
  });
  return [...whole, ...parts];
}

/** The line of the new text at which a part begins to differ. */
export function firstChangedLine({ before, after, replaced }: Hunk): number {
  return after[0] + replaced[0] - before[0];
}

function lens(range: Range, title: string, command: string, ...args: readonly unknown[]): CodeLens {
  return new CodeLens(range, { title, command, arguments: [...args] });
}
