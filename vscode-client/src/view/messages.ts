/** What the agent view and the extension say to each other. The view shows what it is told, and decides nothing. */

import type { Item, Turn } from "../items";
import { list, number, object, oneOf, string, tagged, type Shaped } from "../shape";

/** A question that waits, as the view shows it. */
export interface ShownQuestion {
  readonly id: string;
  readonly tool: string;
  readonly target: string;
  readonly reason: string;
  readonly rule: string | null;
  readonly diff: string | null;
}

export interface ShownSession {
  readonly id: string;
  readonly title: string;
  /** What it held before this window came to it, as Markdown. */
  readonly history: string;
  readonly turns: readonly Turn[];
}

export interface ShownState {
  /** Whether a prompt can be run, and if not, why. */
  readonly problem: string;
  readonly running: boolean;
  readonly mode: string;
  readonly questions: readonly ShownQuestion[];
}

/** To the view. */
export type ToView =
  | { readonly type: "session"; readonly session: ShownSession | null }
  | { readonly type: "turn"; readonly turn: Turn }
  /** Items of a turn that are new or changed; the turn itself comes without items. */
  | { readonly type: "items"; readonly turn: Turn; readonly items: readonly Item[] }
  | { readonly type: "state"; readonly state: ShownState }
  | { readonly type: "focus" };

/** From the view; read with care, because what it shows is not ours. */
export const fromView = tagged("type", {
  ready: object({}),
  prompt: object({ text: string }),
  cancel: object({}),
  answer: object(
    { id: string, decision: oneOf(["allow", "deny"]) },
    { scope: oneOf(["once", "session", "always"]), feedback: string, hunks: list(number) },
  ),
  showChange: object({ id: string }),
  openLink: object({ href: string }),
  openFile: object({ path: string, line: number, column: number }),
  openChange: object({ path: string, turnId: string }),
  undo: object({ turnId: string }),
  run: object({
    command: oneOf([
      "agentLsp.newSession",
      "agentLsp.continueSession",
      "agentLsp.setMode",
      "agentLsp.runValidation",
      "agentLsp.setApiKey",
      "agentLsp.openSettings",
      "agentLsp.restartServer",
      "agentLsp.trust",
    ]),
  }),
});
export type FromView = Shaped<typeof fromView>;
