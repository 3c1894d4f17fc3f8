/** The sessions of the window: what their events came to, and which of them prompts go to. */

import { EventEmitter, type Disposable } from "vscode";

import { Conversation, type TurnChange } from "./conversation";
import type { EventParams } from "./events";

export interface Change {
  readonly session: Conversation;
  /** What changed of it; undefined where all may be another. */
  readonly change?: TurnChange;
}

export class Sessions implements Disposable {
  private readonly known = new Map<string, Conversation>();
  private readonly changed = new EventEmitter<Change>();
  readonly onDidChange = this.changed.event;
  private shown: string | undefined;

  /** The session that the human looks at; undefined before there is one. */
  get current(): Conversation | undefined {
    return this.shown === undefined ? undefined : this.known.get(this.shown);
  }

  get all(): readonly Conversation[] {
    return [...this.known.values()];
  }

  get running(): readonly Conversation[] {
    return this.all.filter((session) => session.running);
  }

  find(id: string): Conversation | undefined {
    return this.known.get(id);
  }

  /** Take an event of the server. The session of a turn that begins is shown. */
  apply({ sessionId, turnId, event }: EventParams): void {
    const session = this.known.get(sessionId) ?? this.add(sessionId);
    if (event.type === "turn_started") {
      this.shown = sessionId;
    }
    this.changed.fire({ session, change: session.apply(turnId, event) });
  }

  /** Show a session, with what it held before as Markdown. */
  show(id: string, history?: string): Conversation {
    const session = this.known.get(id) ?? this.add(id);
    if (history !== undefined && session.turns.length === 0) {
      session.history = history;
    }
    this.shown = id;
    this.changed.fire({ session });
    return session;
  }

  /** The server is gone, and with it what ran. */
  interrupt(): void {
    for (const session of this.running) {
      session.interrupt();
      this.changed.fire({ session });
    }
  }

  dispose(): void {
    this.changed.dispose();
  }

  private add(id: string): Conversation {
    const session = new Conversation(id);
    this.known.set(id, session);
    this.shown ??= id;
    return session;
  }
}
