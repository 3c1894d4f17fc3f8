/** The commands: one table of what the palette, keys, menus and links run. */

import { commands, window, type Disposable } from "vscode";

import { explainSelection, fixDiagnostics, runOnSelection, runPrompt } from "./editorCommands";
import { showHooks, trustWorkspace } from "./inspect";
import type { Parts } from "./parts";
import { object, string } from "./shape";
import { continueSession, newSession, openTranscript, undoTurn } from "./sessionCommands";
import { pickApproval } from "./approvalCommands";

type Handler = (...args: readonly unknown[]) => unknown;

export function registerCommands(parts: Parts): Disposable[] {
  const { agent, failures, key, log, modes, prompts, review, server, view } = parts;
  const handlers: Readonly<Record<string, Handler>> = {
    "agentLsp.runPrompt": (prompt) => runPrompt(prompts, typeof prompt === "string" ? prompt : undefined),
    "agentLsp.runPromptOnSelection": () => runOnSelection(prompts),
    "agentLsp.fixDiagnostics": () => fixDiagnostics(prompts),
    "agentLsp.explainSelection": () => explainSelection(prompts),
    "agentLsp.continueSession": (id) => continueSession(parts, text(id)),
    "agentLsp.newSession": () => newSession(parts),
    "agentLsp.cancel": async () => {
      if (!(await prompts.cancel())) {
        void window.showInformationMessage("Agent: nothing runs.");
      }
    },
    "agentLsp.runValidation": async () => {
      if (!(await agent.validate()).started) {
        void window.showInformationMessage("Agent: not while a prompt runs; it validates by itself at its end.");
      }
    },
    "agentLsp.reviewApprovals": () => pickApproval(parts),
    "agentLsp.undoTurn": (turn) => undoTurn(parts, turn),
    "agentLsp.showTranscript": () => openTranscript(parts),
    "agentLsp.setMode": () => modes.choose(),
    "agentLsp.trust": () => trustWorkspace(agent),
    "agentLsp.showHooks": () => showHooks(agent),
    "agentLsp.showLog": () => log.show(),
    "agentLsp.restartServer": () => server.restart(),
    "agentLsp.openSettings": () => commands.executeCommand("workbench.action.openSettings", "agentLsp"),
    "agentLsp.setApiKey": () => key.ask(),
    "agentLsp.focus": () => view.focus(),
    "agentLsp.refreshSessions": () => parts.sessionList.refresh(),
    "agentLsp.openChangedFile": (node) => openChanged(parts, node),
    "agentLsp.openFile": (node) => openChanged(parts, node, true),
    "agentLsp.accept": (id) => review.accept(text(id)),
    "agentLsp.reject": (id) => review.reject(text(id)),
    "agentLsp.rejectWithFeedback": (id) => review.rejectWithFeedback(text(id)),
    "agentLsp.acceptPart": (id, part) => decide(parts, id, part, true),
    "agentLsp.rejectPart": (id, part) => decide(parts, id, part, false),
  };
  return Object.entries(handlers).map(([name, handler]) =>
    commands.registerCommand(name, async (...args: unknown[]) => {
      try {
        await handler(...args);
      } catch (error) {
        void failures.tell(error);
      }
    }),
  );
}

/** A command's argument; menus pass other things than we do. */
function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function decide({ review }: Parts, id: unknown, part: unknown, taken: boolean): Promise<void> {
  return typeof id === "string" && typeof part === "number" ? review.decide(id, part, taken) : review.decideHere(taken);
}

/** Open a file of the list of changed files. */
async function openChanged({ places }: Parts, node: unknown, plainly = false): Promise<void> {
  const { path, turnId } = object({ path: string, turnId: string })(node);
  await (plainly ? places.openFile(path, 1, 1) : places.openChange(turnId, path));
}
