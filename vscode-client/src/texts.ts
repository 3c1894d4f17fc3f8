/** Texts of the agent that are opened as read-only documents: transcripts, what validators printed. */

import {
  EventEmitter,
  Uri,
  commands,
  window,
  workspace,
  type Disposable,
  type TextDocumentContentProvider,
} from "vscode";

export const TEXT_SCHEME = "agent-text";

export class Texts implements TextDocumentContentProvider, Disposable {
  private readonly texts = new Map<string, string>();
  private readonly changed = new EventEmitter<Uri>();
  readonly onDidChange = this.changed.event;
  private readonly registration: Disposable;

  constructor() {
    this.registration = workspace.registerTextDocumentContentProvider(TEXT_SCHEME, this);
  }

  provideTextDocumentContent(uri: Uri): string {
    return this.texts.get(uri.path) ?? "";
  }

  /** Open a text beside the user's work. */
  async show(name: string, text: string): Promise<void> {
    await window.showTextDocument(this.put(name, text), { preview: true });
  }

  /** Open Markdown as VS Code previews it. */
  async preview(name: string, markdown: string): Promise<void> {
    await commands.executeCommand("markdown.showPreview", this.put(name, markdown));
  }

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
  }

  /** The document of a text; the last part of its name tells the language. */
  put(name: string, text: string): Uri {
    const uri = Uri.from({ scheme: TEXT_SCHEME, path: `/${name}` });
    this.texts.set(uri.path, text);
    this.changed.fire(uri);
    return uri;
  }
}
