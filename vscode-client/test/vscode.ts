/** As much of VS Code as the unit tests need: values that behave, and a window that records what it is asked to show. */

import path from "node:path";

type Listener<T> = (value: T) => unknown;

export class Disposable {
  constructor(readonly dispose: () => void) {}
}

export class EventEmitter<T> {
  private readonly listeners = new Set<Listener<T>>();
  readonly event = (listener: Listener<T>): Disposable => {
    this.listeners.add(listener);
    return new Disposable(() => this.listeners.delete(listener));
  };

  fire(value: T): void {
    for (const listener of [...this.listeners]) {
      listener(value);
    }
  }

  dispose(): void {
    this.listeners.clear();
  }
}

export class CancellationTokenSource {
  private readonly emitter = new EventEmitter<void>();
  readonly token = {
    isCancellationRequested: false,
    onCancellationRequested: this.emitter.event,
  };

  cancel(): void {
    this.token.isCancellationRequested = true;
    this.emitter.fire();
  }

  dispose(): void {
    this.emitter.dispose();
  }
}

export class Position {
  constructor(
    readonly line: number,
    readonly character: number,
  ) {}

  compareTo(other: Position): number {
    return this.line - other.line || this.character - other.character;
  }
}

export class Range {
  readonly start: Position;
  readonly end: Position;

  constructor(startLine: number, startCharacter: number, endLine: number, endCharacter: number) {
    this.start = new Position(startLine, startCharacter);
    this.end = new Position(endLine, endCharacter);
  }
}

export class CodeLens {
  constructor(
    readonly range: Range,
    readonly command: { readonly title: string; readonly command: string; readonly arguments: readonly unknown[] },
  ) {}
}

interface UriParts {
  readonly scheme: string;
  readonly path: string;
  readonly query?: string;
}

export class Uri {
  private constructor(
    readonly scheme: string,
    readonly path: string,
    readonly query: string,
  ) {}

  static from({ scheme, path: name, query }: UriParts): Uri {
    return new Uri(scheme, name, query ?? "");
  }

  static file(name: string): Uri {
    return new Uri("file", name, "");
  }

  static parse(text: string): Uri {
    const url = new URL(text);
    return new Uri(
      url.protocol.slice(0, -1),
      decodeURIComponent(url.pathname),
      decodeURIComponent(url.search.slice(1)),
    );
  }

  static joinPath(base: Uri, ...parts: readonly string[]): Uri {
    return new Uri(base.scheme, path.posix.join(base.path, ...parts), "");
  }

  get fsPath(): string {
    return this.path;
  }

  toString(): string {
    const query = this.query === "" ? "" : `?${encodeURIComponent(this.query)}`;
    return `${this.scheme}://${encodeURI(this.path)}${query}`;
  }
}

export class WorkspaceEdit {
  readonly replacements: { readonly uri: Uri; readonly range: Range; readonly text: string }[] = [];

  replace(uri: Uri, range: Range, text: string): void {
    this.replacements.push({ uri, range, text });
  }
}

export class TabInputText {
  constructor(readonly uri: Uri) {}
}

export class TabInputTextDiff {
  constructor(
    readonly original: Uri,
    readonly modified: Uri,
  ) {}
}

export interface Message {
  readonly text: string;
  readonly choices: readonly string[];
  /** What the human does with it: a title, or undefined for a dismissal. */
  answer(title: string | undefined): void;
}

/** The window's record, emptied by each test that looks at it. */
export const shown: { readonly messages: Message[]; readonly commands: (readonly unknown[])[] } = {
  messages: [],
  commands: [],
};

function show(text: string, ...choices: readonly string[]): Promise<string | undefined> {
  return new Promise((resolve) => shown.messages.push({ text, choices, answer: resolve }));
}

export const window = {
  showInformationMessage: show,
  showWarningMessage: show,
  showErrorMessage: show,
  showQuickPick: (choices: readonly string[], { title }: { readonly title: string }): Promise<string | undefined> =>
    show(title, ...choices),
  showInputBox: ({ title }: { readonly title: string }): Promise<string | undefined> => show(title),
  activeTextEditor: undefined as unknown,
  tabGroups: { all: [] as { tabs: { input: unknown }[] }[], close: (): Promise<boolean> => Promise.resolve(true) },
};

export const commands = {
  executeCommand: (...call: readonly unknown[]): Promise<undefined> => {
    shown.commands.push(call);
    return Promise.resolve(undefined);
  },
};

export const languages = {
  getDiagnostics: (): readonly unknown[] => [],
  registerCodeLensProvider: (): Disposable => new Disposable(() => undefined),
};

export const workspace = {
  isTrusted: true,
  textDocuments: [] as unknown[],
  workspaceFolders: [{ uri: Uri.file("/work space/ünit") }],
  applyEdit: (edit: WorkspaceEdit): Promise<boolean> => Promise.resolve(edit.replacements.length > 0),
  registerTextDocumentContentProvider: (): Disposable => new Disposable(() => undefined),
};

export const env = {};
