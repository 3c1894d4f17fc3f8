/** One running server, spoken to through vscode-languageclient. The only file that imports it, so that it loads late. */

import type { CancellationToken, LogOutputChannel } from "vscode";
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  RevealOutputChannelOn,
  State,
  TransportKind,
  type Middleware,
} from "vscode-languageclient/node";

import { eventParams, type EventParams } from "./events";
import {
  approvalRequest,
  diagnosticsParams,
  readDocumentParams,
  writeDocumentParams,
  type ApprovalAnswer,
  type ApprovalRequest,
  type DiagnosticsParams,
  type DiagnosticsResult,
  type ReadDocumentParams,
  type ReadDocumentResult,
  type WriteDocumentParams,
  type WriteDocumentResult,
} from "./protocol";

/** How the server's process is started. */
export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** What the server asks of the client, and tells it. */
export interface Handlers {
  event(params: EventParams): void;
  requestApproval(request: ApprovalRequest, token: CancellationToken): Promise<ApprovalAnswer | null>;
  readDocument(params: ReadDocumentParams): ReadDocumentResult;
  writeDocument(params: WriteDocumentParams): Promise<WriteDocumentResult>;
  diagnostics(params: DiagnosticsParams): DiagnosticsResult;
  /** The editor's layer of settings (S2). */
  settings(): Readonly<Record<string, unknown>>;
  /** A command of the server, chosen from a code action; undefined leaves it to the server. */
  command(name: string, argument: unknown): Promise<unknown> | undefined;
}

export interface Connection {
  request<Result>(method: string, params: unknown, token?: CancellationToken): Promise<Result>;
  /** Ask the server to read the settings again. */
  settingsChanged(): Promise<void>;
  stop(): Promise<void>;
}

const STOP_MILLISECONDS = 4000; // the server ends its work within two seconds; VS Code waits five for all of us

/** Start a server; resolves when it is initialized. `closed` hears of an end that was not asked for. */
export async function connect(
  launch: Launch,
  handlers: Handlers,
  log: LogOutputChannel,
  closed: () => void,
): Promise<Connection> {
  const client = new LanguageClient(
    "agentLsp",
    "Agent",
    {
      command: launch.command,
      args: [...launch.args],
      transport: TransportKind.stdio,
      options: { cwd: launch.cwd, env: { ...launch.env } },
    },
    {
      documentSelector: [{ scheme: "file" }],
      diagnosticCollectionName: "agent-lsp",
      outputChannel: log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationOptions: { events: true, approvals: true, documents: true, diagnostics: true },
      initializationFailedHandler: () => false,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue }),
        closed: () => ({ action: CloseAction.DoNotRestart, handled: true }),
      },
      middleware: middleware(handlers),
    },
  );
  client.onNotification("agent/event", (params: unknown) => handlers.event(eventParams(params)));
  client.onRequest("agent/requestApproval", (params: unknown, token: CancellationToken) =>
    handlers.requestApproval(approvalRequest(params), token),
  );
  client.onRequest("agent/readDocument", (params: unknown) => handlers.readDocument(readDocumentParams(params)));
  client.onRequest("agent/writeDocument", (params: unknown) => handlers.writeDocument(writeDocumentParams(params)));
  client.onRequest("agent/diagnostics", (params: unknown) => handlers.diagnostics(diagnosticsParams(params)));
  await client.start();
  let stopping = false;
  client.onDidChangeState((change) => {
    if (change.newState === State.Stopped && !stopping) {
      closed();
    }
  });
  return {
    request: (method, params, token) =>
      token === undefined ? client.sendRequest(method, params) : client.sendRequest(method, params, token),
    settingsChanged: () => client.sendNotification("workspace/didChangeConfiguration", { settings: null }),
    stop: async () => {
      stopping = true;
      await client.dispose(STOP_MILLISECONDS);
    },
  };
}

function middleware(handlers: Handlers): Middleware {
  return {
    workspace: {
      configuration: (params) => params.items.map((item) => (item.section === "agentLsp" ? handlers.settings() : null)),
    },
    executeCommand: (command, args, next) =>
      handlers.command(command, args[0]) ?? (next(command, args) as Promise<unknown>),
    handleWorkDoneProgress: () => undefined, // the status bar tells it from the events
  };
}
