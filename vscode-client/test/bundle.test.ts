/** The bundle: small enough, and loading without the language client until a server is wanted (P15). */

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { expect, test } from "vitest";

const client = fileURLToPath(new URL("..", import.meta.url));

test("the bundle is within its budget, and starts without the language client", () => {
  const out = mkdtempSync(path.join(tmpdir(), "bundle-"));
  try {
    execFileSync(process.execPath, ["esbuild.mjs", "--out", out], { cwd: client, stdio: "ignore" });
    const size = (name: string): number => statSync(path.join(out, name)).size;
    expect(size("extension.js") + size("agentConnection.js")).toBeLessThanOrEqual(500_000);
    expect(size("extension.js")).toBeLessThanOrEqual(80_000);
    expect(size("view.js")).toBeLessThanOrEqual(150_000);
    expect(readFileSync(path.join(out, "extension.js"), "utf8")).not.toContain("Content-Length");
    const names = execFileSync(process.execPath, ["-e", LOAD, path.join(out, "agentConnection.js")], {
      encoding: "utf8",
    });
    expect(names.trim()).toBe("connect");
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
});

/** Loads a file with a `vscode` in which everything is a class. */
const LOAD = `
const Module = require("node:module");
const anything = { get: (made, key) => (key in made || typeof key === "symbol" ? made[key] : (made[key] = new Proxy(class {}, anything))) };
const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? new Proxy({}, anything) : load(name, ...rest));
console.log(Object.keys(require(process.argv[1])).join());
`;
