/** The permission mode in force. */

import { EventEmitter, window, workspace, type Disposable, type QuickPickItem } from "vscode";

import type { Agent } from "./agent";
import { MODES, type Mode } from "./protocol";

const DESCRIPTIONS: Readonly<Record<Mode, string>> = {
  default: "Asks before it edits files, runs commands or uses the network",
  accept_edits: "Edits files in the workspace without asking; asks for the rest",
  plan: "Only reads",
  dont_ask: "Denies what it would have to ask for",
  bypass: "Never asks; deny rules, guards and control files still hold",
};

export class Modes implements Disposable {
  private known: Mode | undefined;
  private readonly changed = new EventEmitter<void>();
  readonly onDidChange = this.changed.event;

  constructor(private readonly agent: Agent) {}

  /** The mode, as far as the server has told. */
  get current(): Mode | undefined {
    return this.known;
  }

  /** Ask the server. */
  async refresh(): Promise<void> {
    this.become(await this.agent.mode());
  }

  /** Let the human choose. */
  async choose(): Promise<void> {
    const offered = workspace.isTrusted ? MODES : (["plan"] as const);
    const items = offered.map((mode): QuickPickItem & { readonly mode: Mode } => ({
      mode,
      label: mode.replaceAll("_", " "),
      detail: DESCRIPTIONS[mode],
      ...(mode === this.known ? { description: "now" } : {}),
    }));
    const placeHolder = workspace.isTrusted
      ? "What may the agent do without asking?"
      : "In Restricted Mode the agent only reads";
    const chosen = await window.showQuickPick(items, { title: "Agent: Mode", placeHolder });
    if (chosen !== undefined) {
      this.become(await this.agent.mode(chosen.mode));
    }
  }

  dispose(): void {
    this.changed.dispose();
  }

  private become(mode: Mode): void {
    this.known = mode;
    this.changed.fire();
  }
}
