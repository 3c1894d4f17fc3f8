// As a user would: the .vsix in a clean VS Code, with nothing prepared but Python.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import path from "node:path";

import { FIX, RIGHT } from "./harness/project.ts";
import { PYTHON, ROOT } from "./harness/places.ts";
import { scenario } from "./harness/suite.ts";
import { eventually } from "./harness/wait.ts";

const INSTALL_LIMIT = 300_000;

/** The programs of the system, not those of this clone. */
const PATH = (process.env.PATH ?? "")
  .split(":")
  .filter((folder) => !folder.startsWith(ROOT))
  .join(":");

/** A machine that reaches no package index. */
const ISOLATED = { PATH, PIP_NO_INDEX: "1", PIP_FIND_LINKS: "", PIP_CONFIG_FILE: "/dev/null" };

scenario(
  "the first prompt installs the server into an environment of its own, and runs",
  { own: { environment: { PATH } } },
  async (it) => {
    const { window } = it;
    await it.model.calls(FIX);
    await it.model.text("Fixed.");

    await window.prompt("Mend the bug");
    await window.toast("Agent: first start").waitFor();
    const question = window.toast("Allow edit_file: doubling.py?");
    await question.waitFor({ timeout: INSTALL_LIMIT });
    await window.pressButton(question, "Allow");

    await it.project.becomes("doubling.py", RIGHT);
  },
);

scenario(
  "without a package index a message says so and opens the log; with a folder of wheels it installs",
  { own: { environment: ISOLATED }, fails: true },
  async (it) => {
    const { window } = it;

    await window.prompt("Mend the bug");
    const failure = window.toast("The agent's server could not be installed.");
    await failure.waitFor({ timeout: INSTALL_LIMIT });
    await window.pressButton(failure, "Show Log");
    await eventually("the log shows what pip said", async () =>
      (await window.shown(window.page.locator(".panel .monaco-editor"))).includes("No matching distribution found"),
    );
    assert.deepEqual(await it.model.requests(), []);

    const wheels = path.join(path.dirname(it.project.root), "wheels");
    execFileSync(PYTHON, ["-m", "pip", "wheel", "--quiet", "--wheel-dir", wheels, ROOT], { stdio: "inherit" });
    it.server.set({ "agentLsp.server.wheels": wheels });
    await it.model.text("Here I am.");
    await window.view.getByRole("button", { name: "Try Again" }).click();
    await window.item("agent").locator(".codicon-hubot").waitFor({ timeout: INSTALL_LIMIT });
    await window.prompt("Are you there?");
    await window.view.locator("#transcript", { hasText: "Here I am." }).waitFor();
  },
);
