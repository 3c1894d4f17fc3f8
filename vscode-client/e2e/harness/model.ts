// The scripted model server: a real HTTP server in OpenAI's wire format, steered over its standard streams.

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";

import { PYTHON, ROOT } from "./places.ts";

export interface Call {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

export interface Message {
  readonly role: string;
  readonly content: string | null;
  readonly tool_calls?: readonly { readonly function: { readonly name: string; readonly arguments: string } }[];
}

export interface Request {
  readonly model: string;
  readonly messages: readonly Message[];
}

export class Model {
  readonly #waiting: ((line: string) => void)[] = [];

  private constructor(
    private readonly process: ChildProcessByStdio<Writable, Readable, null>,
    /** What OPENAI_BASE_URL should say. */
    readonly baseUrl: string,
  ) {}

  static async start(): Promise<Model> {
    const child = spawn(PYTHON, ["-m", "tests.support.model_process"], {
      cwd: ROOT,
      stdio: ["pipe", "pipe", "inherit"],
    });
    const lines = createInterface(child.stdout);
    const { base_url } = await new Promise<{ base_url: string }>((resolve, reject) => {
      child.once("exit", (code) => reject(new Error(`the model server ended with ${String(code)}`)));
      lines.once("line", (line) => resolve(JSON.parse(line) as { base_url: string }));
    });
    const model = new Model(child, base_url);
    lines.on("line", (line) => model.#waiting.shift()?.(line));
    return model;
  }

  stop(): void {
    this.process.stdin.end();
  }

  /** Next, answer with this text; "hang" stops behind its last word until the client leaves. */
  async text(text: string, end: "complete" | "hang" = "complete"): Promise<void> {
    await this.#do("text", { text, end });
  }

  /** Next, call these tools. */
  async calls(...calls: Call[]): Promise<void> {
    await this.#do("calls", { calls });
  }

  /** Next, answer with an error. */
  async error(status: number, message: string): Promise<void> {
    await this.#do("error", { status, message });
  }

  async requests(): Promise<Request[]> {
    return (await this.#do("requests")) as Request[];
  }

  /** Rejects unless every answer was asked for, and none beyond them. */
  async consumed(): Promise<void> {
    await this.#do("consumed");
  }

  /** Whether a client has left an answer before its end. */
  async left(): Promise<boolean> {
    return (await this.#do("left")) as boolean;
  }

  /** Start anew: no answers are left, no requests have come. */
  async forget(): Promise<void> {
    await this.#do("forget");
  }

  async #do(verb: string, parameters: object = {}): Promise<unknown> {
    const line = await new Promise<string>((resolve) => {
      this.#waiting.push(resolve);
      this.process.stdin.write(`${JSON.stringify({ do: verb, ...parameters })}\n`);
    });
    const answer = JSON.parse(line) as { result?: unknown; error?: string };
    if (answer.error !== undefined) throw new Error(answer.error);
    return answer.result;
  }
}
