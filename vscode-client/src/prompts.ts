/** Prompts on their way to the agent: run, cancelled, and what the human hears at their end. */

import { CancellationTokenSource, EventEmitter, commands, window, type Disposable } from "vscode";

import type { Agent } from "./agent";
import type { Failures } from "./failures";
import type { PromptParams, PromptResult } from "./protocol";
import { plain, shorten } from "./text";

/** Where the human follows what the agent does. */
export interface Stage {
  readonly visible: boolean;
  /** Bring it up, without taking the keyboard from where it is. */
  reveal(): Promise<void>;
}

const SHOWN = 300; // characters of an answer in a notification

export class Prompts implements Disposable {
  private readonly running = new Set<CancellationTokenSource>();
  private readonly changed = new EventEmitter<void>();
  /** More or fewer run than before. */
  readonly onDidChange = this.changed.event;

  constructor(
    private readonly agent: Agent,
    private readonly stage: Stage,
    private readonly failures: Failures,
  ) {}

  get count(): number {
    return this.running.size;
  }

  /** Run a prompt, and tell how it ended; never raises. */
  async run(params: PromptParams): Promise<void> {
    const source = new CancellationTokenSource();
    this.running.add(source);
    this.changed.fire();
    try {
      await this.stage.reveal();
      this.tell(await this.agent.prompt(params, source.token));
    } catch (error) {
      if (!source.token.isCancellationRequested) {
        void this.failures.tell(error);
      }
    } finally {
      this.running.delete(source);
      source.dispose();
      this.changed.fire();
    }
  }

  /** Cancel everything that runs; returns whether anything did. */
  async cancel(): Promise<boolean> {
    const some = this.count > 0;
    for (const source of this.running) {
      source.cancel();
    }
    return (await this.agent.cancel()).cancelled || some;
  }

  dispose(): void {
    for (const source of this.running) {
      source.cancel();
    }
    this.changed.dispose();
  }

  private tell(result: PromptResult): void {
    if (result.stopReason === "validation_failed") {
      void this.offerFix(result);
    } else if (!this.stage.visible) {
      void this.offerView(result);
    }
  }

  private async offerView({ text, stopReason }: PromptResult): Promise<void> {
    const message = `Agent: ${plain(shorten(text || stopReason, SHOWN))}`;
    if ((await window.showInformationMessage(message, "Show")) !== undefined) {
      await this.stage.reveal();
    }
  }

  private async offerFix({ sessionId, turnId, validation }: PromptResult): Promise<void> {
    const failing = (validation?.failing ?? []).join(", ");
    const message = plain(`Agent: validation failed: ${failing} [${turnId.slice(0, 8)}]`);
    const chosen = await window.showWarningMessage(message, "Show Problems", "Run Again", "Ask the Agent to Fix");
    if (chosen === "Show Problems") {
      await commands.executeCommand("workbench.actions.view.problems");
    } else if (chosen === "Run Again") {
      await this.agent.validate();
    } else if (chosen === "Ask the Agent to Fix") {
      await this.run({ sessionId, prompt: `The validators ${failing} fail. Find out why and fix it.` });
    }
  }
}
