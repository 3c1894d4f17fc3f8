// P15: how large the bundle is, and how long the extension takes to activate, without its server, as VS Code says it.

import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";

import { CodeServer } from "./harness/code-server.ts";
import { ROOT, VSIX } from "./harness/places.ts";
import { makeProject } from "./harness/project.ts";
import { launchBrowser, makeHome, USER } from "./harness/user.ts";
import { Window } from "./harness/window.ts";

const BUDGET = { kilobytes: 500, milliseconds: 50 };
const DIST = path.join(ROOT, "vscode-client", "dist");
const RESULTS = path.join(ROOT, "bench", "results");
const runs = Number(process.argv[2] ?? 5);

const sizes = readdirSync(DIST)
  .filter((name) => name.endsWith(".js"))
  .map((name): [string, number] => [name, statSync(path.join(DIST, name)).size / 1000]);
const total = sizes.reduce((sum, [, size]) => sum + size, 0);

const activations = await measureActivations();
const median = activations.toSorted((one, other) => one - other)[Math.floor(activations.length / 2)]!;

for (const [name, size] of sizes) line(`size of ${name}`, `${size.toFixed(0)} KB`, "-");
line("size of the bundle", `${total.toFixed(0)} KB`, `${String(BUDGET.kilobytes)} KB`);
line("activation, without the server", `${String(median)} ms`, `${String(BUDGET.milliseconds)} ms`);
mkdirSync(RESULTS, { recursive: true });
writeFileSync(
  path.join(RESULTS, "client.json"),
  JSON.stringify({ kilobytes: Object.fromEntries(sizes), activations, median, budget: BUDGET }, undefined, 1),
);

function line(what: string, ours: string, budget: string): void {
  console.log(`${"P15".padEnd(4)} ${what.padEnd(48)} ${ours.padStart(10)} ${budget.padStart(18)}`);
}

/** Milliseconds of each start of a window: loading the code and running `activate`. */
async function measureActivations(): Promise<number[]> {
  const home = makeHome();
  const settings = { ...USER, "agentLsp.server.autoStart": false };
  const server = await CodeServer.start({ home, extensions: [VSIX], settings });
  const browser = await launchBrowser();
  try {
    const project = makeProject(home, "work", {});
    const found: number[] = [];
    for (let run = 0; run <= runs; run++) {
      const window = await Window.open(browser, server, project.root);
      await window.ready();
      await window.command("Developer: Show Running Extensions");
      const row = window.page.locator(".runtime-extensions-editor .extension", { hasText: "agent-lsp" });
      const text = (await row.locator(".activation-time").textContent()) ?? "";
      if (run > 0) found.push(Number(/(\d+)\s*ms/.exec(text)![1])); // the first one fills caches
      await window.close();
    }
    return found;
  } finally {
    await browser.close();
    await server.stop();
    rmSync(home, { recursive: true, force: true });
  }
}
