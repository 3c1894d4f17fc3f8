/** The extension's life: everything is made here, and owned by the context. */

import { window, workspace, type ExtensionContext } from "vscode";

import { Approvals } from "./approvals";
import { registerCommands } from "./commands";
import type { Launch } from "./connection";
import { diagnostics, readDocument, writeDocument } from "./documents";
import { ApprovalNotifications } from "./notifications";
import { Server } from "./server";
import { SECTION, serverCommand } from "./settings";
import { Status } from "./status";
import { Turns } from "./turns";

export function activate(context: ExtensionContext): void {
  const log = window.createOutputChannel("Agent", { log: true });
  const approvals = new Approvals();
  const server = new Server(
    launch,
    {
      event: () => undefined,
      requestApproval: (request, token) => approvals.ask(request, token),
      readDocument,
      writeDocument,
      diagnostics,
      settings: () => ({}),
      command: () => undefined,
    },
    log,
  );
  const turns = new Turns(server);
  const showApproval = async (id: string): Promise<void> => {
    const diff = approvals.find(id)?.request.diff;
    if (diff !== undefined && diff !== null) {
      await window.showTextDocument(await workspace.openTextDocument({ language: "diff", content: diff }));
    }
  };
  context.subscriptions.push(
    log,
    approvals,
    server,
    turns,
    new ApprovalNotifications(approvals, showApproval),
    new Status(server, turns, approvals),
    ...registerCommands({ server, turns, approvals, log, showApproval }),
  );
}

function launch(): Promise<Launch> {
  const [command, ...args] = serverCommand(workspace.getConfiguration(SECTION));
  const folder = workspace.workspaceFolders?.[0];
  if (command === undefined || folder === undefined) {
    return Promise.reject(new Error("Set agentLsp.server.command and open a folder"));
  }
  return Promise.resolve({ command, args, cwd: folder.uri.fsPath, env: process.env });
}
