// As a user would: the .vsix in a clean VS Code, with nothing prepared but Python.

import assert from "node:assert/strict";

import { FIX, RIGHT } from "./harness/project.ts";
import { ROOT } from "./harness/places.ts";
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
  "where the server cannot be installed, a message says so and opens the log",
  { own: { environment: ISOLATED }, fails: true },
  async (it) => {
    const { window } = it;

    await window.prompt("Mend the bug");
    const failure = window.toast("The agent's server could not be installed.");
    await failure.waitFor({ timeout: INSTALL_LIMIT });
    await window.pressButton(failure, "Show Log");

    const log = window.page.locator(".output-view-container, .editor-instance").filter({ hasText: "pip install" });
    await eventually("the log shows what pip said", async () => {
      const text = (await log.first().textContent()) ?? "";
      return text.replaceAll("\u00a0", " ").includes("No matching distribution found");
    });
    assert.deepEqual(await it.model.requests(), []);
  },
);
