/** Programs that run to their end. */

import { spawn } from "node:child_process";

export interface Outcome {
  /** The exit code; null where the program did not start, or was stopped. */
  readonly code: number | null;
  readonly stdout: string;
  /** What it wrote to stderr, or why it did not start. */
  readonly stderr: string;
}

export interface RunOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal;
  /** Hears each line of output as it comes. */
  readonly line?: (line: string) => void;
}

export type Run = (command: string, args: readonly string[], options: RunOptions) => Promise<Outcome>;

/** Run a program without a shell; stopped, with its children, by the signal. */
export const run: Run = (command, args, { cwd, env, signal, line }) =>
  new Promise((resolve) => {
    const group = process.platform !== "win32";
    const child = spawn(command, [...args], { cwd, env, stdio: ["ignore", "pipe", "pipe"], detached: group });
    const texts = { stdout: "", stderr: "" };
    const stop = (): void => {
      try {
        process.kill(group && child.pid !== undefined ? -child.pid : (child.pid ?? 0));
      } catch {
        child.kill();
      }
    };
    for (const name of ["stdout", "stderr"] as const) {
      const lines = new Lines(line);
      child[name].setEncoding("utf8").on("data", (chunk: string) => {
        texts[name] += chunk;
        lines.add(chunk);
      });
    }
    const end = (code: number | null, reason = ""): void => {
      signal?.removeEventListener("abort", stop);
      resolve({ code, stdout: texts.stdout, stderr: texts.stderr + reason });
    };
    child.on("error", (error) => end(null, error.message));
    child.on("close", (code) => end(signal?.aborted === true ? null : code));
    if (child.pid !== undefined) {
      signal?.addEventListener("abort", stop);
      if (signal?.aborted === true) {
        stop();
      }
    }
  });

class Lines {
  private rest = "";

  constructor(private readonly line: ((line: string) => void) | undefined) {}

  add(chunk: string): void {
    const lines = (this.rest + chunk).split(/\r?\n/);
    this.rest = lines.pop() ?? "";
    for (const each of lines) {
      this.line?.(each);
    }
  }
}
