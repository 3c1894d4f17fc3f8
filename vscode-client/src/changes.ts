/** What waits for an answer, as documents: a change as the native diff of the file now and then, a command as a text. */

import path from "node:path";

import {
  EventEmitter,
  TabInputText,
  TabInputTextDiff,
  Uri,
  commands,
  window,
  workspace,
  type Disposable,
  type Tab,
  type TextDocumentContentProvider,
} from "vscode";

import type { Approvals } from "./approvals";
import type { ApprovalRequest } from "./protocol";
import { plain } from "./text";

export const CHANGE_SCHEME = "agent-change";

type Side = "before" | "after" | "details";

export class Changes implements TextDocumentContentProvider, Disposable {
  private readonly changed = new EventEmitter<Uri>();
  readonly onDidChange = this.changed.event;
  private readonly subscriptions: readonly Disposable[];
  private readonly shownAt = new Map<string, number>();

  constructor(
    private readonly approvals: Approvals,
    private readonly now: () => number = Date.now,
  ) {
    this.subscriptions = [
      workspace.registerTextDocumentContentProvider(CHANGE_SCHEME, this),
      approvals.onDidChange(() => void this.closeOld()),
    ];
    void this.closeOld(); // what a reload of the window has left
  }

  provideTextDocumentContent(uri: Uri): string {
    const { id, side } = readChangeUri(uri);
    const request = this.approvals.find(id)?.request;
    if (request === undefined) {
      return "";
    }
    return side === "details" ? details(request) : (request[side] ?? "");
  }

  /** Open what a question is about; false where it does not wait any more. */
  async show(id: string): Promise<boolean> {
    const request = this.approvals.find(id)?.request;
    if (request === undefined) {
      return false;
    }
    const options = { preview: false };
    if (request.after === null || request.uri === null) {
      await window.showTextDocument(changeUri(request, "details"), options);
    } else {
      const title = `${path.posix.basename(Uri.parse(request.uri).path)} (Agent: ${request.before === null ? "new file" : "now ↔ proposed"})`;
      await commands.executeCommand(
        "vscode.diff",
        changeUri(request, "before"),
        changeUri(request, "after"),
        title,
        options,
      );
    }
    this.shownAt.set(id, this.now());
    return true;
  }

  /** How long a question has been on screen here, in milliseconds; undefined if it was not opened. */
  shownFor(id: string): number | undefined {
    const since = this.shownAt.get(id);
    return since === undefined ? undefined : this.now() - since;
  }

  dispose(): void {
    for (const each of [...this.subscriptions, this.changed]) {
      each.dispose();
    }
  }

  /** Close the tabs of questions that do not wait any more. */
  private async closeOld(): Promise<void> {
    for (const id of this.shownAt.keys()) {
      if (this.approvals.find(id) === undefined) {
        this.shownAt.delete(id);
      }
    }
    const old = window.tabGroups.all
      .flatMap((group) => group.tabs)
      .filter((tab) => {
        const id = questionOf(tab);
        return id !== undefined && this.approvals.find(id) === undefined;
      });
    if (old.length > 0) {
      await window.tabGroups.close(old, true);
    }
  }
}

/** The question that a document of ours is about. */
export function questionAt(uri: Uri | undefined): string | undefined {
  return uri?.scheme === CHANGE_SCHEME ? readChangeUri(uri).id : undefined;
}

function questionOf({ input }: Tab): string | undefined {
  if (input instanceof TabInputTextDiff) {
    return questionAt(input.modified);
  }
  return input instanceof TabInputText ? questionAt(input.uri) : undefined;
}

export function changeUri(request: ApprovalRequest, side: Side): Uri {
  const file = request.uri === null ? `/${request.tool}` : Uri.parse(request.uri).path; // the name tells the language
  return Uri.from({ scheme: CHANGE_SCHEME, path: file, query: `${side}&${request.id}` });
}

export function readChangeUri(uri: Uri): { readonly id: string; readonly side: Side } {
  const [side, id] = uri.query.split("&", 2);
  return { id: id ?? "", side: side === "before" || side === "after" ? side : "details" };
}

/** What a call that changes no file would do, whole. */
export function details(request: ApprovalRequest): string {
  return [
    `The agent wants to run ${request.tool}:`,
    "",
    request.target,
    "",
    plain(request.reason),
    ...(request.rule === null ? [] : [`Always Allow would remember the rule ${request.rule}`]),
    "",
  ].join("\n");
}
