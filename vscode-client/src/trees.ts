/** The lists beside the agent view: the files that the session changed, turn by turn, and the sessions there are. */

import path from "node:path";

import {
  EventEmitter,
  ThemeIcon,
  TreeItem,
  TreeItemCollapsibleState,
  window,
  type Disposable,
  type TreeDataProvider,
} from "vscode";

import type { Agent } from "./agent";
import type { Turn } from "./items";
import type { SessionEntry } from "./protocol";
import { sessionState } from "./sessionCommands";
import type { Server } from "./server";
import type { Sessions } from "./sessions";
import { plain, shorten } from "./text";
import { fileInWorkspace } from "./view/places";

/** A turn that changed files, or one of these files. */
export type ChangeNode =
  | { readonly kind: "turn"; readonly turnId: string; readonly turn: Turn }
  | { readonly kind: "file"; readonly turnId: string; readonly path: string };

export class ChangedFiles implements TreeDataProvider<ChangeNode>, Disposable {
  private readonly changed = new EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly subscriptions: readonly Disposable[];

  constructor(private readonly sessions: Sessions) {
    this.subscriptions = [
      window.registerTreeDataProvider("agentLsp.changes", this),
      sessions.onDidChange(({ change }) => {
        if (change === undefined || change.items === "all" || change.items.some((item) => item.kind === "call")) {
          this.changed.fire(undefined);
        }
      }),
    ];
  }

  getChildren(node?: ChangeNode): ChangeNode[] {
    if (node === undefined) {
      const turns = (this.sessions.current?.turns ?? []).filter(({ changes }) => changes.length > 0);
      return turns.map((turn): ChangeNode => ({ kind: "turn", turnId: turn.id, turn })).reverse();
    }
    return node.kind === "file"
      ? []
      : node.turn.changes.map((name) => ({ kind: "file", turnId: node.turnId, path: name }));
  }

  getTreeItem(node: ChangeNode): TreeItem {
    if (node.kind === "turn") {
      const item = new TreeItem(plain(shorten(node.turn.prompt, 60)), TreeItemCollapsibleState.Expanded);
      item.contextValue = "turn";
      item.iconPath = new ThemeIcon("comment");
      return item;
    }
    const item = new TreeItem(path.basename(node.path));
    const uri = fileInWorkspace(node.path);
    item.description = path.dirname(node.path) === "." ? "" : path.dirname(node.path);
    item.contextValue = "file";
    if (uri !== undefined) {
      item.resourceUri = uri;
      item.iconPath = ThemeIcon.File;
    }
    item.command = { command: "agentLsp.openChangedFile", title: "Open Change", arguments: [node] };
    return item;
  }

  dispose(): void {
    for (const each of [...this.subscriptions, this.changed]) {
      each.dispose();
    }
  }
}

export class SessionList implements TreeDataProvider<SessionEntry>, Disposable {
  private readonly changed = new EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly subscriptions: readonly Disposable[];

  constructor(
    private readonly agent: Agent,
    private readonly server: Server,
    sessions: Sessions,
  ) {
    this.subscriptions = [
      window.registerTreeDataProvider("agentLsp.sessions", this),
      server.onDidChangeState(() => this.refresh()),
      sessions.onDidChange(({ change }) => {
        if (change === undefined || change.items === "all") {
          this.refresh();
        }
      }),
    ];
  }

  refresh(): void {
    this.changed.fire(undefined);
  }

  /** The sessions of the workspace; none while no server runs, which a list shall not start. */
  async getChildren(entry?: SessionEntry): Promise<SessionEntry[]> {
    if (entry !== undefined || this.server.state.kind !== "running") {
      return [];
    }
    return [...(await this.agent.sessions().catch(() => []))];
  }

  getTreeItem(entry: SessionEntry): TreeItem {
    const item = new TreeItem(plain(shorten(entry.title, 60)) || "New session");
    item.id = entry.sessionId;
    const when = entry.updated === null ? "" : new Date(entry.updated * 1000).toLocaleString();
    item.description = [sessionState(entry), when].filter((part) => part !== "").join(", ");
    item.iconPath = new ThemeIcon(entry.running ? "loading~spin" : "comment-discussion");
    item.command = { command: "agentLsp.continueSession", title: "Continue Session", arguments: [entry.sessionId] };
    return item;
  }

  dispose(): void {
    for (const each of [...this.subscriptions, this.changed]) {
      each.dispose();
    }
  }
}
