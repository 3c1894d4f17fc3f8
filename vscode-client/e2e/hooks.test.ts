// The user's own programs in the loop.

import assert from "node:assert/strict";

import { FIX, WITH_TEST, WRONG } from "./harness/project.ts";
import { scenario } from "./harness/suite.ts";
import { eventually } from "./harness/wait.ts";

const HOOKS = {
  hooks: {
    PreToolUse: [
      {
        type: "command",
        command: "echo 'no edits on a Sunday' >&2; exit 2",
        matcher: "edit_file",
        blocking: true,
      },
    ],
  },
};

scenario(
  "a hook that blocks an edit is shown, and asked about before it runs for the first time",
  { files: { ".agent-lsp/settings.json": JSON.stringify(HOOKS, undefined, 2) } },
  async (it) => {
    const { window } = it;
    await it.model.calls(FIX);
    await it.model.text("I may not.");
    await window.openFile("doubling.py");

    await window.prompt("Mend the bug");
    await window.pressButton(window.toast("Allow trust"), "Allow");

    await window.toast("PreToolUse blocked edit_file: no edits on a Sunday").waitFor();
    const requests = await eventually("the model hears of it", async () => {
      const all = await it.model.requests();
      return all.length === 2 && all;
    });
    assert.match(requests[1]!.messages.at(-1)!.content!, /no edits on a Sunday/);
    assert.equal(it.project.read("doubling.py"), WRONG);
  },
);

scenario("red validation goes back to the model as a reminder until it is green", { files: WITH_TEST }, async (it) => {
  const { window } = it;
  await it.model.calls({
    ...FIX,
    arguments: { path: "doubling.py", edits: [{ old: "number + 2", new: "number * 3" }] },
  });
  await it.model.text("Done?");
  await it.model.calls({
    ...FIX,
    arguments: { path: "doubling.py", edits: [{ old: "number * 3", new: "number * 2" }] },
  });
  await it.model.text("Now it is right.");

  await window.prompt("Mend the bug");
  await window.pressButton(window.toast("Allow edit_file: doubling.py?"), "Allow");
  await it.project.becomes("doubling.py", WRONG.replace("+ 2", "* 3"));
  await window.pressButton(window.toast("Allow trust"), "Allow");
  await eventually("the model hears of the red test", async () => (await it.model.requests()).length === 3);
  await window.pressButton(window.toast("Allow edit_file: doubling.py?"), "Allow");

  await it.project.becomes("doubling.py", WRONG.replace("+ 2", "* 2"));
  await window.running(false);
  const [, , reminded] = await it.model.requests();
  assert.match(reminded!.messages.at(-1)!.content!, /<system-reminder>[^]*assert 9 == 6/);
});
