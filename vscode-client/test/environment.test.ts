/** The private environment: found, made, used again, and mended. */

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

import { expect, test as base } from "vitest";

import { findInterpreter, prepareEnvironment, type EnvironmentOptions, type Interpreter } from "../src/environment";
import { run, type Outcome, type Run } from "../src/processes";

const PYTHON: Interpreter = { executable: "/usr/bin/python3", version: [3, 12], server: null };
const OK: Outcome = { code: 0, stdout: "", stderr: "" };

/** A place of its own for each test, with a wheel in it. */
const test = base.extend<{ readonly root: string }>({
  root: async ({ task }, use) => {
    const root = mkdtempSync(path.join(tmpdir(), `environment ü ${task.id} `));
    mkdirSync(path.join(root, "python"));
    writeFileSync(path.join(root, "python", "agent_lsp-0.1.0-py3-none-any.whl"), "wheel");
    await use(root);
    rmSync(root, { recursive: true, force: true });
  },
});

/** A system whose Python makes what `venv` would make; `pip` does what it is told. */
function system(
  root: string,
  pip: (args: readonly string[]) => Outcome = () => OK,
): {
  options: EnvironmentOptions;
  calls: string[];
} {
  const calls: string[] = [];
  const fake: Run = (_command, args) => {
    calls.push(args.slice(1, 3).join(" ").replace(root, ""));
    if (args[1] === "venv") {
      const bin = path.join(args[2] ?? "", "bin");
      mkdirSync(bin, { recursive: true });
      writeFileSync(path.join(bin, "python"), "");
      return Promise.resolve(OK);
    }
    return Promise.resolve(pip(args));
  };
  const storage = path.join(root, "storage");
  mkdirSync(storage, { recursive: true });
  const signal = new AbortController().signal;
  const nothing = (): void => undefined;
  return {
    calls,
    options: { storage, wheels: [path.join(root, "python")], run: fake, signal, log: nothing, progress: nothing },
  };
}

const kinds = (calls: readonly string[]): string[] => calls.map((call) => call.split(" ")[0] ?? "");

test("it is made once and used again", async ({ root }) => {
  const { options, calls } = system(root);
  const python = await prepareEnvironment(PYTHON, options);
  expect(path.dirname(path.dirname(path.dirname(python)))).toBe(options.storage);
  expect(await prepareEnvironment(PYTHON, options)).toBe(python);
  expect(kinds(calls)).toEqual(["venv", "pip"]);
});

test("two windows make it once", async ({ root }) => {
  const { options, calls } = system(root);
  const [one, other] = await Promise.all([prepareEnvironment(PYTHON, options), prepareEnvironment(PYTHON, options)]);
  expect(one).toBe(other);
  expect(kinds(calls)).toEqual(["venv", "pip"]);
});

test("one that is half made is made anew, also where a window died over it", async ({ root }) => {
  const { options, calls } = system(root);
  const python = await prepareEnvironment(PYTHON, options);
  const directory = path.dirname(path.dirname(python));
  rmSync(path.join(directory, "complete.json"));
  mkdirSync(`${directory}.lock`);
  writeFileSync(path.join(`${directory}.lock`, "pid"), "999999999");
  await prepareEnvironment(PYTHON, options);
  expect(kinds(calls)).toEqual(["venv", "pip", "venv", "pip"]);
  expect(existsSync(`${directory}.lock`)).toBe(false);
});

test("an installation that fails leaves nothing that counts as made", async ({ root }) => {
  let fails = true;
  const { options, calls } = system(root, () => (fails ? { ...OK, code: 1 } : OK));
  await expect(prepareEnvironment(PYTHON, options)).rejects.toThrow("could not be installed");
  fails = false;
  await prepareEnvironment(PYTHON, options);
  expect(kinds(calls)).toEqual(["venv", "pip", "venv", "pip"]);
});

test("another build of the server has an environment of its own, and old ones go", async ({ root }) => {
  const { options } = system(root);
  const first = path.dirname(path.dirname(await prepareEnvironment(PYTHON, options)));
  writeFileSync(path.join(root, "python", "agent_lsp-0.1.0-py3-none-any.whl"), "another");
  utimesSync(path.join(first, "complete.json"), new Date(0), new Date(0));
  const second = path.dirname(path.dirname(await prepareEnvironment(PYTHON, options)));
  expect(second).not.toBe(first);
  expect(readdirSync(options.storage)).toEqual([path.basename(second)]);
});

test("wheels at hand are enough, where they are all there", async ({ root }) => {
  writeFileSync(path.join(root, "python", "anyio-4.0.0-py3-none-any.whl"), "");
  const seen: boolean[] = [];
  const { options } = system(root, (args) => {
    seen.push(args.includes("--no-index"));
    return args.includes("--no-index") ? { ...OK, code: 1 } : OK;
  });
  await prepareEnvironment(PYTHON, options);
  expect(seen).toEqual([true, false]);
});

test("a system without venv is told what to install", async ({ root }) => {
  const { options } = system(root);
  const broken: Run = () => Promise.resolve({ code: 1, stdout: "ensurepip is not available", stderr: "" });
  await expect(prepareEnvironment(PYTHON, { ...options, run: broken })).rejects.toThrow("python3-venv");
});

test("a build without the server says so", async ({ root }) => {
  const { options } = system(root);
  await expect(prepareEnvironment(PYTHON, { ...options, wheels: [] })).rejects.toThrow("carries no server");
});

test("the first Python that is new enough is taken, and what was tried is named", async ({ root }) => {
  const { options } = system(root);
  const versions: Readonly<Record<string, string>> = { old: "[3, 9]", new: "[3, 11]" };
  const probe: Run = (command) => {
    const version = versions[command];
    const stdout = `["/bin/${command}", ${version?.slice(1, -1) ?? ""}, "0.1.0"]`;
    return Promise.resolve(version === undefined ? { ...OK, code: null } : { ...OK, stdout });
  };
  const tools = { ...options, run: probe };
  const expected = { executable: "/bin/new", version: [3, 11], server: "0.1.0" };
  expect(await findInterpreter(["none", "old", "new"], tools)).toEqual(expected);
  await expect(findInterpreter(["none", "old"], tools)).rejects.toThrow(
    "needs Python 3.11 or later. Tried: none (does not run), old (3.9)",
  );
});

test("a real Python makes one, with a real wheel", { timeout: 120_000 }, async ({ root }) => {
  const { options } = system(root);
  const tools = { ...options, run };
  const real = await findInterpreter(["python3", "python3.12", "python3.11"], tools).catch(() => undefined);
  if (real === undefined) {
    return;
  }
  execFileSync(real.executable, ["-c", WHEEL, path.join(root, "python", "agent_lsp-0.1.0-py3-none-any.whl")]);
  const python = await prepareEnvironment(real, tools);
  expect(execFileSync(python, ["-m", "agent_lsp"], { encoding: "utf8" })).toBe("here\n");
});

test("a program that is stopped ends with its children", async ({ root }) => {
  const canceller = new AbortController();
  const options = { cwd: root, env: process.env, signal: canceller.signal };
  const begun = new Promise<number>((resolve) => {
    void run("sh", ["-c", "sleep 60 & echo $!; wait"], { ...options, line: (line) => resolve(Number(line)) });
  });
  const pid = await begun;
  canceller.abort();
  await expect.poll(() => isRunning(pid), { timeout: 10_000 }).toBe(false);
});

function isRunning(pid: number): boolean {
  const { stdout } = spawnSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" });
  return stdout.trim() !== "" && !stdout.startsWith("Z"); // nobody may have looked at its end
}

const WHEEL = `
import sys, zipfile
info = "agent_lsp-0.1.0.dist-info"
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    wheel.writestr("agent_lsp/__init__.py", "")
    wheel.writestr("agent_lsp/__main__.py", "print('here')")
    wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: agent-lsp\\nVersion: 0.1.0\\n")
    wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(f"{info}/RECORD", "")
`;
