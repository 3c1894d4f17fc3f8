/** The prompts that run. */

import { CancellationTokenSource, EventEmitter, type Disposable } from "vscode";

import type { PromptParams, PromptResult } from "./protocol";
import type { Server } from "./server";

export class Turns implements Disposable {
  private readonly sources = new Set<CancellationTokenSource>();
  private readonly changed = new EventEmitter<void>();
  readonly onDidChange = this.changed.event;

  constructor(private readonly server: Server) {}

  /** How many run. */
  get running(): number {
    return this.sources.size;
  }

  /** Run a prompt to its end. */
  async run(params: PromptParams): Promise<PromptResult> {
    const source = new CancellationTokenSource();
    this.sources.add(source);
    this.changed.fire();
    try {
      return await this.server.request<PromptResult>("agent/prompt", params, source.token);
    } finally {
      this.sources.delete(source);
      source.dispose();
      this.changed.fire();
    }
  }

  /** Cancel all; returns whether something ran. */
  cancel(): boolean {
    const running = this.running > 0;
    for (const source of this.sources) {
      source.cancel();
    }
    return running;
  }

  dispose(): void {
    this.cancel();
    this.changed.dispose();
  }
}
