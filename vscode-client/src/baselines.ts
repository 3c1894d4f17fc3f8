/** What files held before a turn changed them, as far as this window was shown it with a question. */

import path from "node:path";

import { Uri, type Disposable } from "vscode";

import type { Approvals } from "./approvals";
import type { Sessions } from "./sessions";
import type { Texts } from "./texts";

export class Baselines implements Disposable {
  private readonly known = new Map<string, Uri>();
  private readonly subscription: Disposable;

  constructor(
    private readonly approvals: Approvals,
    private readonly sessions: Sessions,
    private readonly texts: Texts,
  ) {
    this.subscription = approvals.onDidChange(() => this.note());
  }

  /** The document of what a file held before a turn. */
  find(turnId: string, file: Uri): Uri | undefined {
    return this.known.get(key(turnId, file));
  }

  dispose(): void {
    this.subscription.dispose();
  }

  private note(): void {
    const [session, ...others] = this.sessions.running;
    const turn = others.length === 0 ? session?.turns.at(-1) : undefined; // a question does not say whose it is
    if (turn === undefined) {
      return;
    }
    for (const { request } of this.approvals.questions) {
      const file = request.uri === null ? undefined : Uri.parse(request.uri);
      if (file !== undefined && !this.known.has(key(turn.id, file))) {
        const name = `${turn.id}/${path.posix.basename(file.path)}`;
        this.known.set(key(turn.id, file), this.texts.put(name, request.before ?? ""));
      }
    }
  }
}

function key(turnId: string, file: Uri): string {
  return `${turnId} ${file.toString()}`;
}
