/** Where the agent view leads to: files of the workspace, their changes, and links that are safe to open. */

import path from "node:path";

import { Position, Range, Uri, commands, env, window, workspace } from "vscode";

import type { Baselines } from "../baselines";

export class Places {
  constructor(private readonly baselines: Baselines) {}

  /** Open a web page after VS Code's own question, or a file of the workspace; nothing else. */
  async openLink(href: string): Promise<void> {
    const link = readLink(href);
    if (link?.kind === "web") {
      await env.openExternal(Uri.parse(link.href, true));
    } else if (link === undefined) {
      void window.showWarningMessage("Agent: this link leads neither to a web page nor to a file of the workspace.");
    } else {
      await this.openFile(link.name, link.line, 1);
    }
  }

  /** Open a file of the workspace; line and column count from 1. */
  async openFile(name: string, line: number, column: number): Promise<void> {
    const uri = fileInWorkspace(name);
    if (uri === undefined) {
      void window.showWarningMessage("Agent: this file is not in the workspace.");
      return;
    }
    const place = new Position(Math.max(line - 1, 0), Math.max(column - 1, 0));
    await window.showTextDocument(uri, { selection: new Range(place, place) });
  }

  /** Show what a turn changed in a file: against what was there before, where that is known, or as the file is. */
  async openChange(turnId: string, name: string): Promise<void> {
    const uri = fileInWorkspace(name);
    if (uri === undefined) {
      return;
    }
    const before = this.baselines.find(turnId, uri);
    if (before === undefined) {
      await window.showTextDocument(uri);
    } else {
      await commands.executeCommand("vscode.diff", before, uri, `${path.basename(name)} (before the turn ↔ now)`);
    }
  }
}

/** A file below one of the workspace's folders; undefined for any other. */
export function fileInWorkspace(name: string): Uri | undefined {
  for (const { uri } of workspace.workspaceFolders ?? []) {
    const file = path.resolve(uri.fsPath, name);
    const relative = path.relative(uri.fsPath, file);
    if (relative !== "" && relative.split(path.sep)[0] !== ".." && !path.isAbsolute(relative)) {
      return Uri.file(file);
    }
  }
  return undefined;
}

type Link =
  | { readonly kind: "web"; readonly href: string }
  | { readonly kind: "file"; readonly name: string; readonly line: number };

/** What a link of the model leads to; undefined for what is not opened: commands, scripts, other programs' schemes. */
export function readLink(href: string): Link | undefined {
  if (/^https?:\/\/[^\s]+$/i.test(href)) {
    return { kind: "web", href };
  }
  const [, name = "", line = "1"] = /^(.*?)(?:(?::|#L)(\d+)(?::\d+)?)?$/.exec(safelyDecoded(href)) ?? [];
  const file = name.replace(/^file:\/\/(?=\/)/i, "");
  const hasScheme = /^[a-z][a-z0-9+.-]+:/i.test(file); // one letter is a drive
  return file === "" || hasScheme || file.startsWith("//")
    ? undefined
    : { kind: "file", name: file, line: Number(line) };
}

function safelyDecoded(href: string): string {
  try {
    return decodeURIComponent(href);
  } catch {
    return href;
  }
}
