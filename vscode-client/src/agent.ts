/** What the server can be asked to do, with types. Starts the server where none runs. */

import type { CancellationToken } from "vscode";

import {
  hooksResult,
  modeResult,
  promptResult,
  resumeResult,
  sessionEntry,
  statusResult,
  transcriptResult,
  trustResult,
  undoResult,
  type HooksResult,
  type Mode,
  type PromptParams,
  type PromptResult,
  type SessionEntry,
  type StatusResult,
  type TrustResult,
  type UndoResult,
} from "./protocol";
import type { Server } from "./server";
import { boolean, list, object, string, type Shape, type Shaped } from "./shape";

export class Agent {
  constructor(private readonly server: Server) {}

  /** Run a prompt to its end. */
  async prompt(params: PromptParams, token: CancellationToken): Promise<PromptResult> {
    return promptResult(await this.server.request("agent/prompt", params, token));
  }

  /** Cancel the turns of a session, or of all. */
  cancel(sessionId?: string): Promise<{ readonly cancelled: boolean }> {
    return this.command("agent.cancel", object({ cancelled: boolean }), sessionId === undefined ? {} : { sessionId });
  }

  /** Run the validators in the background; not while a turn runs. */
  validate(): Promise<{ readonly started: boolean }> {
    return this.command("agent.validate", object({ started: boolean }), {});
  }

  status(): Promise<StatusResult> {
    return this.command("agent.status", statusResult, {});
  }

  async mode(mode?: Mode): Promise<Mode> {
    return (await this.command("agent.mode", modeResult, mode === undefined ? {} : { mode })).mode;
  }

  trust(decision?: "grant" | "revoke"): Promise<TrustResult> {
    return this.command("agent.trust", trustResult, decision === undefined ? {} : { decision });
  }

  hooks(): Promise<HooksResult> {
    return this.command("agent.hooks", hooksResult, {});
  }

  newSession(): Promise<{ readonly sessionId: string }> {
    return this.command("agent.session.new", object({ sessionId: string }), {});
  }

  sessions(): Promise<readonly SessionEntry[]> {
    return this.command("agent.session.list", list(sessionEntry), {});
  }

  resume(sessionId: string): Promise<Shaped<typeof resumeResult>> {
    return this.command("agent.session.resume", resumeResult, { sessionId });
  }

  transcript(sessionId?: string): Promise<Shaped<typeof transcriptResult>> {
    const argument = sessionId === undefined ? {} : { sessionId };
    return this.command("agent.session.transcript", transcriptResult, argument);
  }

  /** Put back what a turn changed; without a turn, the last one that changed anything. */
  undo(argument: { readonly sessionId?: string; readonly turnId?: string }): Promise<UndoResult> {
    return this.command("agent.undo", undoResult, argument);
  }

  private async command<T>(name: string, result: Shape<T>, argument: object): Promise<T> {
    return result(
      await this.server.request("workspace/executeCommand", { command: name, arguments: [argument] }),
      name,
    );
  }
}
