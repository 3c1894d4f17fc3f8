/** The command palette: every command of the category Agent. */

import { commands, window, type Disposable, type LogOutputChannel } from "vscode";

import type { Approvals } from "./approvals";
import type { Server } from "./server";
import { shorten } from "./text";
import type { Turns } from "./turns";

export interface Parts {
  readonly server: Server;
  readonly turns: Turns;
  readonly approvals: Approvals;
  readonly log: LogOutputChannel;
  readonly showApproval: (id: string) => Promise<void>;
}

export function registerCommands(parts: Parts): Disposable[] {
  const { server, turns, log } = parts;
  const handlers: Readonly<Record<string, (...args: readonly unknown[]) => unknown>> = {
    "agentLsp.runPrompt": () => runPrompt(parts),
    "agentLsp.cancel": () => turns.cancel(),
    "agentLsp.reviewApprovals": () =>
      parts.approvals.questions[0] && parts.showApproval(parts.approvals.questions[0].request.id),
    "agentLsp.runValidation": () => server.command("agent.validate"),
    "agentLsp.showLog": () => log.show(),
    "agentLsp.restartServer": () => server.restart(),
    "agentLsp.openSettings": () => commands.executeCommand("workbench.action.openSettings", "@ext:agent-lsp.agent-lsp"),
  };
  return Object.entries(handlers).map(([name, handler]) =>
    commands.registerCommand(name, async (...args: unknown[]) => {
      try {
        await handler(...args);
      } catch (error) {
        await tell(error, log);
      }
    }),
  );
}

async function runPrompt({ turns }: Parts): Promise<void> {
  const prompt = await window.showInputBox({
    title: "Agent",
    prompt: "What shall the agent do?",
    ignoreFocusOut: true,
  });
  if (prompt === undefined || prompt.trim() === "") {
    return;
  }
  const result = await turns.run({ prompt });
  void window.showInformationMessage(`Agent: ${shorten(result.text || result.stopReason, 300)}`);
}

async function tell(error: unknown, log: LogOutputChannel): Promise<void> {
  const message = error instanceof Error ? error.message : String(error);
  log.error(message);
  if ((await window.showErrorMessage(`Agent: ${message}`, "Show Log")) === "Show Log") {
    log.show();
  }
}
