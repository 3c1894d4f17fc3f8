/** How the server is started: by the user's command, by a Python that has it, or in a private environment. */

import path from "node:path";

import {
  ProgressLocation,
  Uri,
  extensions,
  window,
  workspace,
  type ExtensionContext,
  type LogOutputChannel,
} from "vscode";

import type { Launch } from "./agentConnection";
import { cleanEnvironment, findInterpreter, prepareEnvironment } from "./environment";
import { run } from "./processes";
import type { ApiKey } from "./secrets";
import { SECTION, launchSettings, type LaunchSettings } from "./settings";

const INSTALLED = "installedVersion";

/** What must be there before a server is of use. */
export class NoFolderError extends Error {
  constructor() {
    super("Open a folder first: the agent works on the files of a folder.");
  }
}

export class Launcher {
  constructor(
    private readonly context: ExtensionContext,
    private readonly key: ApiKey,
    private readonly log: LogOutputChannel,
  ) {}

  /** Whether the server starts with the window: not where that would install it, which waits until it is wanted. */
  startsByItself(): boolean {
    const configuration = workspace.getConfiguration(SECTION);
    const { command, interpreter } = launchSettings(configuration);
    const isThere =
      command.length > 0 || interpreter !== "" || this.context.globalState.get(INSTALLED) === this.version;
    return isThere && workspace.workspaceFolders !== undefined && configuration.get<boolean>("server.autoStart", true);
  }

  private get version(): string {
    const { version } = this.context.extension.packageJSON as { readonly version: string };
    return version;
  }

  /** Everything that starting the server needs. Raises NoFolderError or EnvironmentError. */
  async launch(): Promise<Launch> {
    const folder = workspace.workspaceFolders?.find(({ uri }) => uri.scheme === "file");
    if (folder === undefined) {
      throw new NoFolderError();
    }
    const settings = launchSettings(workspace.getConfiguration(SECTION));
    const key = await this.key.get();
    const own = key === undefined ? {} : { [settings.keyVariable]: key };
    const serve = ["serve", "--log-level", settings.logLevel];
    const cwd = folder.uri.fsPath;
    const [command, ...args] = settings.command;
    if (command !== undefined) {
      return { command, args: args.length > 0 ? args : serve, cwd, env: { ...process.env, ...own } };
    }
    const python = await this.python(settings);
    const env = { ...cleanEnvironment(process.env), PYTHONUTF8: "1", ...own };
    return { command: python, args: ["-m", "agent_lsp", ...serve], cwd, env };
  }

  /** A Python in which the server is installed: the one that was set, if it is there, or that of a private environment. */
  private async python(settings: LaunchSettings): Promise<string> {
    const storage = path.join(this.context.globalStorageUri.fsPath, "environments");
    const canceller = new AbortController();
    const tools = { run, storage, signal: canceller.signal };
    const set = settings.interpreter;
    const found = await findInterpreter(set === "" ? await this.candidates() : [set], tools);
    if (set !== "" && found.server !== null) {
      return found.executable;
    }
    const wheels = ["python", "wheels"].map((name) => Uri.joinPath(this.context.extensionUri, name).fsPath);
    const prepare = (progress: (message: string) => void): Promise<string> =>
      prepareEnvironment(found, {
        ...tools,
        wheels: settings.wheels === "" ? wheels : [...wheels, settings.wheels],
        log: (line) => this.log.info(line),
        progress,
      });
    const python = await this.showing(canceller, prepare);
    await this.context.globalState.update(INSTALLED, this.version);
    return python;
  }

  /** Show the progress of something once it has something to report. */
  private async showing<T>(
    canceller: AbortController,
    task: (progress: (message: string) => void) => Promise<T>,
  ): Promise<T> {
    let report: ((message: string) => void) | undefined;
    let finished: () => void = () => undefined;
    const done = new Promise<void>((resolve) => (finished = resolve));
    const progress = (message: string): void => {
      if (report === undefined) {
        const options = { location: ProgressLocation.Notification, title: "Agent: first start", cancellable: true };
        void window.withProgress(options, async (shown, token) => {
          token.onCancellationRequested(() => canceller.abort());
          report = (message) => shown.report({ message });
          report(message);
          await done;
        });
      } else {
        report(message);
      }
    };
    try {
      return await task(progress);
    } finally {
      finished();
    }
  }

  /** The Pythons to try, the best first. That of a workspace is not run before the workspace is trusted. */
  private async candidates(): Promise<readonly string[]> {
    const selected = workspace.isTrusted ? await selectedByPythonExtension() : undefined;
    const common =
      process.platform === "win32"
        ? ["python", "python3", "py"]
        : ["python3", "python3.14", "python3.13", "python3.12", "python3.11", "python"];
    return [...(selected === undefined ? [] : [selected]), ...common];
  }
}

interface PythonExtension {
  readonly environments?: {
    getActiveEnvironmentPath(resource?: Uri): { readonly path: string };
    resolveEnvironment(environment: {
      readonly path: string;
    }): Promise<{ readonly executable: { readonly uri?: Uri } } | undefined>;
  };
}

/** The interpreter that is selected in the Python extension, if that is installed. */
async function selectedByPythonExtension(): Promise<string | undefined> {
  const extension = extensions.getExtension<PythonExtension>("ms-python.python");
  if (extension === undefined) {
    return undefined;
  }
  try {
    const { environments } = await extension.activate();
    const active = environments?.getActiveEnvironmentPath(workspace.workspaceFolders?.[0]?.uri);
    const resolved = active === undefined ? undefined : await environments?.resolveEnvironment(active);
    return resolved?.executable.uri?.fsPath;
  } catch {
    return undefined; // another version of that extension, or a fault in it: there are other Pythons
  }
}
