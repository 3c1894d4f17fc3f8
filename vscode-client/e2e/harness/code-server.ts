// A real VS Code: one code-server process with a user of its own.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";

import { CODE_SERVER } from "./places.ts";
import { descendants, isAlive } from "./processes.ts";
import { eventually, START_LIMIT } from "./wait.ts";

export type Json = Readonly<Record<string, unknown>>;

export interface Options {
  /** An empty folder for all that is this user's. */
  readonly home: string;
  readonly extensions: readonly string[];
  readonly settings?: Json;
  readonly environment?: Readonly<Record<string, string>>;
  /** Whether VS Code asks if a folder's authors are trusted. */
  readonly asksForTrust?: boolean;
}

const QUIET: Json = {
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "chat.commandCenter.enabled": false,
  "git.openRepositoryInParentFolders": "never",
  "extensions.ignoreRecommendations": true,
  "remote.autoForwardPorts": false,
  "telemetry.telemetryLevel": "off",
};

export class CodeServer {
  private constructor(
    private readonly process: ChildProcess,
    readonly url: string,
    private readonly home: string,
  ) {}

  static async start(options: Options): Promise<CodeServer> {
    const environment = userEnvironment(options);
    const shared = ["--config", path.join(options.home, "empty.yaml"), "--user-data-dir", dataOf(options.home)];
    shared.push("--extensions-dir", path.join(options.home, "extensions"));
    writeFileSync(path.join(options.home, "empty.yaml"), "");
    writeSettings(options.home, options.settings ?? {});
    for (const extension of options.extensions) {
      execFileSync(process.execPath, [CODE_SERVER, ...shared, "--install-extension", extension], {
        env: environment,
        stdio: ["ignore", "pipe", "pipe"],
      });
    }
    const flags = ["--auth", "none", "--bind-addr", "127.0.0.1:0", "--disable-telemetry", "--disable-update-check"];
    flags.push("--disable-getting-started-override", "--ignore-last-opened");
    if (options.asksForTrust !== true) flags.push("--disable-workspace-trust");
    const child = spawn(process.execPath, [CODE_SERVER, ...shared, ...flags], {
      env: environment,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true, // a group of its own, which ends as a whole
    });
    process.once("exit", () => end(child)); // whatever ends the tests
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => (output += text));
    }
    const url = await eventually(
      "code-server listens",
      () => {
        if (child.exitCode !== null) throw new Error(`code-server ended with ${String(child.exitCode)}: ${output}`);
        return /HTTP server listening on (http:\S+?)\/?$/m.exec(output)?.[1];
      },
      START_LIMIT,
    );
    return new CodeServer(child, url, options.home);
  }

  /** The address of a workbench with a folder open. */
  folderUrl(folder: string): string {
    return `${this.url}/?folder=${encodeURIComponent(folder)}`;
  }

  /** Replace the user's settings; a running VS Code hears of it. */
  set(settings: Json): void {
    writeSettings(this.home, settings);
  }

  /** The language servers that run now. */
  agents(): number[] {
    return descendants(this.pid)
      .filter(({ command }) => /agent[-_]lsp\b.* serve\b/.test(command))
      .map(({ pid }) => pid);
  }

  get pid(): number {
    return this.process.pid!;
  }

  async stop(): Promise<void> {
    const family = [this.pid, ...descendants(this.pid).map(({ pid }) => pid)];
    end(this.process);
    await eventually("everything that code-server started ends", () => !family.some(isAlive)).catch(() => {
      for (const pid of family.filter(isAlive)) process.kill(pid, "SIGKILL");
    });
  }
}

function end(child: ChildProcess): void {
  if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, "SIGTERM");
}

const dataOf = (home: string): string => path.join(home, "code");

/** The window's machine is the server's: what belongs to the machine is read from there, the rest from the user's. */
function writeSettings(home: string, settings: Json): void {
  const entries = Object.entries({ ...QUIET, ...settings });
  const ofMachine = ([name]: [string, unknown]): boolean => name.startsWith("agentLsp.server.");
  write("User", Object.fromEntries(entries.filter((entry) => !ofMachine(entry))));
  write("Machine", Object.fromEntries(entries.filter(ofMachine)));

  function write(layer: string, values: Json): void {
    mkdirSync(path.join(dataOf(home), layer), { recursive: true });
    writeFileSync(path.join(dataOf(home), layer, "settings.json"), JSON.stringify(values, undefined, 2));
  }
}

/** The environment of a user who has nothing: no settings, no caches, no key but what is given. */
function userEnvironment({ home, environment }: Options): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(OPENAI_|AGENT_LSP_|VSCODE_|npm_)/.test(name));
  const own = ["CONFIG", "DATA", "CACHE", "STATE"].map((name) => [`XDG_${name}_HOME`, path.join(home, name)]);
  return {
    ...(Object.fromEntries([...kept, ...own]) as NodeJS.ProcessEnv),
    HOME: home,
    VSCODE_CLI: "1", // or it asks the shell of the user for an environment
    ...environment,
  };
}
