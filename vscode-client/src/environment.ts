/**
 * The private Python environment of the server that the extension carries: made on first start, used again afterwards.
 *
 * Invariant: an environment without its marker is not finished, and is made anew; the marker is written last.
 */

import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, rm, rmdir, stat, utimes, writeFile } from "node:fs/promises";
import path from "node:path";

import type { Outcome, Run } from "./processes";

export const OLDEST_PYTHON = [3, 11] as const;

/** What the human should hear, and do. */
export class EnvironmentError extends Error {}

export interface Interpreter {
  readonly executable: string;
  readonly version: readonly [number, number];
  /** The version of the server that is installed beside it, where there is one. */
  readonly server: string | null;
}

export interface EnvironmentOptions {
  /** Where environments lie: the extension's global storage. */
  readonly storage: string;
  /** Directories with wheels: the server's, and those of what it needs for machines without a package index. */
  readonly wheels: readonly string[];
  readonly run: Run;
  readonly signal: AbortSignal;
  readonly log: (line: string) => void;
  readonly progress: (message: string) => void;
}

const MARKER = "complete.json";
const KEPT_DAYS = 30; // since its last use; another window may run an older version
const LOCK_MILLISECONDS = 300;
const PROBE = `import importlib.metadata as m, json, sys
try:
    server = m.version("agent-lsp")
except m.PackageNotFoundError:
    server = None
print(json.dumps([sys.executable, *sys.version_info[:2], server]))`;

/** The variables for a Python of ours: nothing that would make it import other people's packages. */
export function cleanEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const foreign = new Set(["PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV"]);
  return Object.fromEntries(Object.entries(env).filter(([name]) => !foreign.has(name.toUpperCase())));
}

/** The first of some commands that is a Python which is new enough. Raises EnvironmentError that lists what was tried. */
export async function findInterpreter(
  candidates: readonly string[],
  { run, storage, signal }: Pick<EnvironmentOptions, "run" | "storage" | "signal">,
): Promise<Interpreter> {
  await mkdir(storage, { recursive: true });
  const tried: string[] = [];
  for (const candidate of new Set(candidates)) {
    const outcome = await run(candidate, ["-c", PROBE], { cwd: storage, env: cleanEnvironment(process.env), signal });
    const interpreter = outcome.code === 0 ? readProbe(outcome.stdout) : undefined;
    if (interpreter === undefined) {
      tried.push(`${candidate} (does not run)`);
    } else if (isOld(interpreter.version)) {
      tried.push(`${candidate} (${interpreter.version.join(".")})`);
    } else {
      return interpreter;
    }
  }
  const wanted = OLDEST_PYTHON.join(".");
  throw new EnvironmentError(
    `The agent needs Python ${wanted} or later. Tried: ${tried.join(", ")}. ` +
      `Install one, or set agentLsp.server.interpreter to it.`,
  );
}

function readProbe(output: string): Interpreter | undefined {
  try {
    const [executable, major, minor, server] = JSON.parse(output) as [string, number, number, string | null];
    return { executable, version: [major, minor], server };
  } catch {
    return undefined;
  }
}

function isOld([major, minor]: readonly [number, number]): boolean {
  return major < OLDEST_PYTHON[0] || (major === OLDEST_PYTHON[0] && minor < OLDEST_PYTHON[1]);
}

/** The Python of the server's environment, which is made if it is not there. Raises EnvironmentError. */
export async function prepareEnvironment(interpreter: Interpreter, options: EnvironmentOptions): Promise<string> {
  const wheel = await findWheel(options.wheels);
  const directory = path.join(options.storage, await environmentName(interpreter, wheel));
  const python = environmentPython(directory);
  if (!(await isComplete(directory))) {
    await locked(`${directory}.lock`, options.signal, async () => {
      if (!(await isComplete(directory))) {
        await make(directory, interpreter, wheel, options);
      }
    });
  }
  const now = new Date();
  await utimes(path.join(directory, MARKER), now, now);
  await removeUnused(options.storage, directory);
  return python;
}

async function make(
  directory: string,
  interpreter: Interpreter,
  wheel: string,
  options: EnvironmentOptions,
): Promise<void> {
  await rm(directory, { recursive: true, force: true });
  options.progress("making a Python environment");
  const made = await runLogged(interpreter.executable, ["-m", "venv", directory], options);
  if (made.code !== 0) {
    await rm(directory, { recursive: true, force: true });
    const missing = `${made.stdout}${made.stderr}`.includes("ensurepip");
    throw failure(
      options.signal,
      `${interpreter.executable} cannot make a virtual environment` +
        (missing ? ": install the package python3-venv of your system, or choose another Python." : "."),
    );
  }
  options.progress("installing the server");
  await install(environmentPython(directory), wheel, options);
  await writeFile(path.join(directory, MARKER), JSON.stringify({ wheel: path.basename(wheel) }));
}

/** Install the wheel with what it needs: from the wheels at hand where they are all there, else from the index too. */
async function install(python: string, wheel: string, options: EnvironmentOptions): Promise<void> {
  const links = options.wheels.flatMap((directory) => ["--find-links", directory]);
  const pip = ["-m", "pip", "install", "--disable-pip-version-check", "--no-input", ...links];
  if ((await wheelsIn(options.wheels)).length > 1) {
    const offline = await runLogged(python, [...pip, "--no-index", wheel], options);
    if (offline.code === 0) {
      return;
    }
    options.log("the wheels at hand are not enough; asking the package index");
  }
  const outcome = await runLogged(python, [...pip, wheel], options);
  if (outcome.code !== 0) {
    throw failure(
      options.signal,
      "The agent's server could not be installed. The log says why; without a package index, " +
        "set agentLsp.server.wheels to a folder with the wheels that it needs.",
    );
  }
}

function failure(signal: AbortSignal, message: string): EnvironmentError {
  return new EnvironmentError(signal.aborted ? "The installation of the agent's server was cancelled." : message);
}

async function runLogged(command: string, args: readonly string[], options: EnvironmentOptions): Promise<Outcome> {
  options.log(`${command} ${args.join(" ")}`);
  const outcome = await options.run(command, args, {
    cwd: options.storage,
    env: { ...cleanEnvironment(process.env), PYTHONUTF8: "1" },
    signal: options.signal,
    line: options.log,
  });
  if (outcome.code !== 0) {
    options.log(`ended with ${outcome.code ?? "no exit code"}`);
  }
  return outcome;
}

async function findWheel(directories: readonly string[]): Promise<string> {
  const wheels = (await wheelsIn(directories)).filter((file) => path.basename(file).startsWith("agent_lsp-"));
  const wheel = wheels[0];
  if (wheel === undefined) {
    throw new EnvironmentError(
      "This build of the extension carries no server. Set agentLsp.server.command, or agentLsp.server.interpreter " +
        "to a Python in which agent-lsp is installed.",
    );
  }
  return wheel;
}

async function wheelsIn(directories: readonly string[]): Promise<readonly string[]> {
  const listed = await Promise.all(
    directories.map(async (directory) => {
      const names = await readdir(directory).catch(() => []);
      return names.filter((name) => name.endsWith(".whl")).map((name) => path.join(directory, name));
    }),
  );
  return listed.flat();
}

/** One environment for each build of the server and each Python. */
async function environmentName({ executable, version }: Interpreter, wheel: string): Promise<string> {
  const digest = createHash("sha256")
    .update(await readFile(wheel))
    .update(executable)
    .digest("hex")
    .slice(0, 12);
  return `${path.basename(wheel).split("-").slice(0, 2).join("-")}-py${version.join(".")}-${digest}`;
}

function environmentPython(directory: string): string {
  return process.platform === "win32"
    ? path.join(directory, "Scripts", "python.exe")
    : path.join(directory, "bin", "python");
}

async function isComplete(directory: string): Promise<boolean> {
  const there = await Promise.all(
    [path.join(directory, MARKER), environmentPython(directory)].map((file) => stat(file).catch(() => undefined)),
  );
  return there.every((file) => file !== undefined);
}

/** Do something while no other window does; the lock of a process that is gone is taken over. */
async function locked(lock: string, signal: AbortSignal, task: () => Promise<void>): Promise<void> {
  const holder = path.join(lock, "pid");
  while (
    !(await mkdir(lock).then(
      () => true,
      () => false,
    ))
  ) {
    if (signal.aborted) {
      throw failure(signal, "");
    }
    const pid = Number(await readFile(holder, "utf8").catch(() => ""));
    const age = Date.now() - ((await stat(lock).catch(() => undefined))?.mtimeMs ?? Date.now());
    if (pid > 0 ? !isAlive(pid) : age > 10_000) {
      await release(lock, holder);
    } else {
      await new Promise((resolve) => setTimeout(resolve, LOCK_MILLISECONDS));
    }
  }
  await writeFile(holder, String(process.pid));
  try {
    await task();
  } finally {
    await release(lock, holder);
  }
}

async function release(lock: string, holder: string): Promise<void> {
  await rm(holder, { force: true });
  await rmdir(lock).catch(() => undefined);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

async function removeUnused(storage: string, current: string): Promise<void> {
  const oldest = Date.now() - KEPT_DAYS * 24 * 60 * 60 * 1000;
  for (const name of await readdir(storage)) {
    const directory = path.join(storage, name);
    const marker = await stat(path.join(directory, MARKER)).catch(() => undefined);
    if (directory !== current && marker !== undefined && marker.mtimeMs < oldest) {
      await rm(directory, { recursive: true, force: true }).catch(() => undefined);
    }
  }
}
