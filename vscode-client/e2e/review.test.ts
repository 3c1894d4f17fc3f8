// Changes that are looked at before they are accepted, as a whole or in parts.

import assert from "node:assert/strict";

import { FIX, FIX_AND_RAISE, LIMIT_LINE, RAISED, RIGHT, WRONG } from "./harness/project.ts";
import { type Scenario, scenario } from "./harness/suite.ts";
import { eventually } from "./harness/wait.ts";

const TWO_PLACES = { files: { "doubling.py": WRONG + LIMIT_LINE } };

/** Ask for a change, and look at it. */
async function showChange({ window }: Scenario): Promise<void> {
  await window.prompt("Mend the bug and raise the limit");
  await window.pressButton(window.toast("Allow edit_file: doubling.py?"), "Show Change");
  await window.lens("Accept").waitFor();
}

scenario("one part of a change is accepted, the other rejected", TWO_PLACES, async (it) => {
  const { window } = it;
  await it.model.calls(FIX_AND_RAISE);
  await it.model.text("Fixed, but the limit.");
  await showChange(it);
  await window.shows(window.diff("modified"), RIGHT + RAISED);
  assert.equal(it.project.read("doubling.py"), WRONG + LIMIT_LINE);

  await window.pressLens("Accept Part 1 of 2");
  await window.lens("Part 1 of 2 Accepted").waitFor();
  await window.pressLens("Reject Part 2 of 2");

  await it.project.becomes("doubling.py", RIGHT + LIMIT_LINE);
  await window.diff("modified").waitFor({ state: "detached" });
  const requests = await eventually("the model hears of it", async () => {
    const all = await it.model.requests();
    return all.length === 2 && all;
  });
  assert.match(requests[1]!.messages.at(-1)!.content!, /LIMIT|part/);
});

scenario("a change is rejected with a word on it, which the model hears", TWO_PLACES, async (it) => {
  const { window } = it;
  await it.model.calls(FIX_AND_RAISE);
  await it.model.text("I see.");
  await showChange(it);

  await window.pressLens("Reject with Feedback…");
  await window.answer("What shall the agent do instead?", "Leave the limit alone");

  const requests = await eventually("the model hears of it", async () => {
    const all = await it.model.requests();
    return all.length === 2 && all;
  });
  assert.match(requests[1]!.messages.at(-1)!.content!, /Leave the limit alone/);
  assert.equal(it.project.read("doubling.py"), WRONG + LIMIT_LINE);
});

scenario("everything by keyboard: prompt, review, accept", {}, async (it) => {
  const { window } = it;
  await it.model.calls(FIX);
  await it.model.text("Fixed.");
  await window.openFile("doubling.py");

  await window.chord("Control+k", "Alt+a");
  await window.answer("What shall the agent do?", "Mend the bug");
  await window.toast("Allow edit_file: doubling.py?").waitFor();
  await window.chord("Control+k", "Alt+r");
  await window.lens("Accept").waitFor();
  await window.guard();
  await window.chord("Control+k", "Alt+y");

  await it.project.becomes("doubling.py", RIGHT);
});

scenario("a question that was dismissed waits, and is found by the palette", {}, async (it) => {
  const { window } = it;
  await it.model.calls(FIX);
  await it.model.text("Fixed.");
  await window.prompt("Mend the bug");
  const question = window.toast("Allow edit_file: doubling.py?");
  await question.waitFor();

  await window.command("Notifications: Clear All Notifications");
  await question.waitFor({ state: "detached" });
  await window.item("approvals").getByText("1 to approve").waitFor();
  await window.command("Agent: Review Pending Approvals");
  await window.pressLens("Accept");

  await it.project.becomes("doubling.py", RIGHT);
  await window.item("approvals").waitFor({ state: "detached" });
});
