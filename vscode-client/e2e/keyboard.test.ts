// What keys can do, and what they must never do.

import assert from "node:assert/strict";

import { FIX, WRONG } from "./harness/project.ts";
import { scenario } from "./harness/suite.ts";
import { eventually } from "./harness/wait.ts";
import { GUARD } from "./harness/window.ts";

scenario("typing while a question is on screen answers nothing", {}, async (it) => {
  await it.model.calls(FIX);
  await it.model.text("Not done.");
  const { window } = it;
  await window.openFile("doubling.py");
  await window.prompt("Mend the bug");
  const question = window.toast("Allow edit_file: doubling.py?");
  await question.waitFor();

  await window.focusEnd("doubling.py");
  await window.page.keyboard.type("\n1 yes a\n2 no\ny\n \n", { delay: GUARD / 10 });
  await window.press("Enter");
  await window.press("Escape");
  await window.press("Control+s");

  await eventually("what was typed is in the file", () => it.project.read("doubling.py").includes("2 no"));
  assert.ok(it.project.read("doubling.py").startsWith(WRONG));
  assert.equal((await it.model.requests()).length, 1);
  await it.window.command("Agent: Cancel");
  await it.window.running(false);
  await it.model.forget();
});
