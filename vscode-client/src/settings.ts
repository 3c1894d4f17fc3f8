/** The extension's settings, and the editor's layer of the server's (S2) that is made of them. */

import type { WorkspaceConfiguration } from "vscode";

export const SECTION = "agentLsp";

/** The command that starts the server, where the user set one. */
export function serverCommand(configuration: WorkspaceConfiguration): readonly string[] {
  return configuration.get<readonly string[]>("server.command", []).filter((word) => word !== "");
}
