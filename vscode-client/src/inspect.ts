/** What the workspace would execute: its hooks, and the human's word on it. */

import path from "node:path";

import { Position, Range, Uri, commands, window, workspace, type QuickPickItem } from "vscode";

import type { Agent } from "./agent";
import type { HooksResult } from "./protocol";
import { plain } from "./text";

/** Show exactly what the workspace would execute or widen, and decide. */
export async function trustWorkspace(agent: Agent): Promise<void> {
  if (!workspace.isTrusted) {
    await commands.executeCommand("workbench.trust.manage");
    return;
  }
  const { items, trusted } = await agent.trust();
  if (items.length === 0) {
    void window.showInformationMessage("Agent: this workspace executes nothing of its own.");
    return;
  }
  const detail = items.map(({ text, place, trusted: is }) => `${is ? "✓" : "•"} ${text}\n   ${place}`).join("\n");
  const message = trusted
    ? "You trust what this workspace would execute."
    : "Trust what this workspace would execute? It is asked again when it changes.";
  const [grant, revoke] = ["Trust", "Revoke Trust"];
  const answers = trusted ? [revoke] : items.some((each) => each.trusted) ? [grant, revoke] : [grant];
  const chosen = await window.showWarningMessage(message, { modal: true, detail }, ...answers);
  if (chosen !== undefined) {
    const result = await agent.trust(chosen === grant ? "grant" : "revoke");
    void window.showInformationMessage(result.trusted ? "Agent: trusted." : "Agent: not trusted.");
  }
}

interface HookItem extends QuickPickItem {
  readonly hook?: HooksResult["hooks"][number];
}

/** List the hooks with their state and last run; a chosen one is shown where it is set. */
export async function showHooks(agent: Agent): Promise<void> {
  const { hooks, problems, runs } = await agent.hooks();
  const items: HookItem[] = [
    ...hooks.map((hook): HookItem => {
      const last = runs.findLast((run) => run.name === hook.name && run.event === hook.event);
      const states = [
        hook.trusted ? [] : ["not trusted: it does not run"],
        last === undefined ? [] : [`last run: ${last.decision}${last.reason === "" ? "" : ` (${last.reason})`}`],
        hook.lastMismatch === null ? [] : [`left out: ${hook.lastMismatch}`],
      ].flat();
      return {
        hook,
        label: `$(${hook.trusted ? "zap" : "shield"}) ${plain(hook.name)}`,
        description: `${hook.event}${hook.blocking ? ", blocking" : ""}: ${plain(hook.text)}`,
        detail: plain(states.join("; ")) || "has not run yet",
      };
    }),
    ...problems.map((problem): HookItem => ({ label: `$(warning) ${plain(problem)}` })),
  ];
  if (items.length === 0) {
    void window.showInformationMessage("Agent: no hooks are configured.");
    return;
  }
  const placeHolder = "Choose one to open it in its settings file";
  const options = { title: "Agent: Hooks", placeHolder, matchOnDescription: true, matchOnDetail: true };
  const chosen = await window.showQuickPick(items, options);
  if (chosen?.hook !== undefined && path.isAbsolute(chosen.hook.source)) {
    const place = new Position(Math.max(chosen.hook.line - 1, 0), Math.max(chosen.hook.column - 1, 0));
    await window.showTextDocument(Uri.file(chosen.hook.source), { selection: new Range(place, place) });
  }
}
