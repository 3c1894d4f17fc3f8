// A folder whose authors are not trusted.

import assert from "node:assert/strict";

import { FIX, RIGHT, WRONG } from "./harness/project.ts";
import { scenario } from "./harness/suite.ts";
import { USER } from "./harness/user.ts";
import { eventually } from "./harness/wait.ts";

scenario(
  "in Restricted Mode the agent reads and nothing else; trust lets it ask",
  { own: { asksForTrust: true, settings: USER } },
  async (it) => {
    const { window } = it;
    await it.model.calls({ name: "read_file", arguments: { path: "doubling.py" } });
    await it.model.calls(FIX, { name: "shell", arguments: { command: "touch ran" } });
    await it.model.text("I can only read.");
    await window.dialog.getByRole("button", { name: "No, I don't trust the authors" }).click();

    await window.prompt("Mend the bug");

    const requests = await eventually("the model hears of it", async () => {
      const all = await it.model.requests();
      return all.length === 3 && all;
    });
    const [edited, ran] = requests[2]!.messages.slice(-2);
    assert.match(requests[1]!.messages.at(-1)!.content!, /number \+ 2/);
    assert.match(edited!.content!, /^Error \[permission_denied\]/);
    assert.match(ran!.content!, /^Error \[permission_denied\]/);
    assert.equal(it.project.read("doubling.py"), WRONG);
    assert.throws(() => it.project.read("ran"));

    await window.command("Workspaces: Manage Workspace Trust");
    await window.page.getByRole("button", { name: "Trust", exact: true }).click();
    await it.model.calls(FIX);
    await it.model.text("Fixed.");
    await window.prompt("Try again");
    await window.pressButton(window.toast("Allow edit_file: doubling.py?"), "Allow");

    await it.project.becomes("doubling.py", RIGHT);
  },
);
