/** The one server of the window: started on need, and started, stopped and restarted through one queue. */

import { EventEmitter, type CancellationToken, type Disposable, type LogOutputChannel } from "vscode";

import type { Connection, Handlers, Launch } from "./agentConnection";

export type ServerState =
  | { readonly kind: "stopped" }
  | { readonly kind: "starting" }
  | { readonly kind: "running" }
  | { readonly kind: "failed"; readonly message: string };

type Connect = (launch: Launch, handlers: Handlers, log: LogOutputChannel, closed: () => void) => Promise<Connection>;

const CRASHES = 3; // in a row, each within the time below, after which a human must start it again
const CRASH_MILLISECONDS = 60_000;

export class Server implements Disposable {
  private readonly changed = new EventEmitter<ServerState>();
  readonly onDidChangeState = this.changed.event;
  private current: ServerState = { kind: "stopped" };
  private connection: Connection | undefined;
  private queue: Promise<unknown> = Promise.resolve();
  private crashes: number[] = [];
  private disposed = false;

  constructor(
    private readonly launch: () => Promise<Launch>,
    private readonly handlers: Handlers,
    private readonly log: LogOutputChannel,
    private readonly connect: Connect = async (...args) => (await import("./agentConnection")).connect(...args),
  ) {}

  get state(): ServerState {
    return this.current;
  }

  /** The running server, started where none runs. */
  start(): Promise<Connection> {
    return this.enqueue(() => this.running());
  }

  restart(): Promise<Connection> {
    this.crashes = [];
    return this.enqueue(async () => {
      await this.end();
      return this.running();
    });
  }

  stop(): Promise<void> {
    return this.enqueue(() => this.end());
  }

  /** Send a request to the server, started where none runs. */
  async request<Result>(method: string, params: unknown, token?: CancellationToken): Promise<Result> {
    return (await this.start()).request<Result>(method, params, token);
  }

  /** Tell a running server that settings changed. */
  async settingsChanged(): Promise<void> {
    await this.connection?.settingsChanged();
  }

  dispose(): void {
    this.disposed = true;
    void this.stop();
    this.changed.dispose();
  }

  private enqueue<T>(task: () => Promise<T>): Promise<T> {
    const result = this.queue.then(task);
    this.queue = result.catch(() => undefined);
    return result;
  }

  private async running(): Promise<Connection> {
    if (this.connection !== undefined) {
      return this.connection;
    }
    if (this.disposed) {
      throw new Error("The window is closing");
    }
    this.become({ kind: "starting" });
    try {
      const launch = await this.launch();
      this.log.info(`starting ${[launch.command, ...launch.args].join(" ")} in ${launch.cwd}`);
      const connection = await this.connect(launch, this.handlers, this.log, () => this.closed(connection));
      this.connection = connection;
      this.become({ kind: "running" });
      return connection;
    } catch (error) {
      this.become({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
      throw error;
    }
  }

  private async end(): Promise<void> {
    const connection = this.connection;
    this.connection = undefined;
    if (connection !== undefined) {
      await connection.stop().catch((error: unknown) => this.log.warn(`the server did not end well: ${String(error)}`));
    }
    this.become({ kind: "stopped" });
  }

  /** The server ended by itself: start it again, but not for ever. */
  private closed(connection: Connection): void {
    if (this.connection !== connection) {
      return;
    }
    const now = Date.now();
    this.connection = undefined;
    this.crashes = [...this.crashes.filter((time) => now - time < CRASH_MILLISECONDS), now];
    const message = "the server ended unexpectedly";
    this.log.error(message);
    this.become({ kind: "failed", message });
    if (this.crashes.length < CRASHES) {
      void this.start().catch(() => undefined);
    }
  }

  private become(state: ServerState): void {
    this.current = state;
    if (!this.disposed) {
      this.changed.fire(state);
    }
  }
}
