// From the palette to the disk.

import assert from "node:assert/strict";

import { FIX, RIGHT, SPOIL, WRONG } from "./harness/project.ts";
import { scenario } from "./harness/suite.ts";
import { eventually } from "./harness/wait.ts";

scenario("a prompt runs, its edit is allowed in the notification, the file is changed", {}, async (it) => {
  await it.model.calls(FIX);
  await it.model.text("Fixed: it doubles now.");

  await it.window.prompt("Mend the bug");
  const question = it.window.toast("Allow edit_file: doubling.py?");
  await question.waitFor();
  assert.equal(it.project.read("doubling.py"), WRONG);
  await it.window.pressButton(question, "Allow");

  await it.project.becomes("doubling.py", RIGHT);
  await it.window.running(false);
  const [first] = await it.model.requests();
  assert.equal(first?.messages.at(-1)?.content, "Mend the bug");
});

scenario(
  "a refused edit changes nothing, and the model hears of it",
  { files: { "doubling.py": RIGHT } },
  async (it) => {
    await it.model.calls(SPOIL);
    await it.model.text("Not done.");

    await it.window.prompt("Spoil it");
    await it.window.pressButton(it.window.toast("Allow edit_file: doubling.py?"), "Deny");

    const requests = await eventually("the model hears of the refusal", async () => {
      const all = await it.model.requests();
      return all.length === 2 && all;
    });
    assert.match(requests[1]!.messages.at(-1)!.content!, /^Error \[permission_denied\]/);
    assert.equal(it.project.read("doubling.py"), RIGHT);
  },
);

scenario("a running prompt is cancelled from the palette", {}, async (it) => {
  await it.model.text("This takes a while", "hang");

  await it.window.prompt("Take your time");
  await it.window.running(true);
  await eventually("the model was asked", async () => (await it.model.requests()).length === 1);
  await it.window.command("Agent: Cancel");

  await eventually("the model's answer is left", () => it.model.left());
  await it.window.running(false);
});
