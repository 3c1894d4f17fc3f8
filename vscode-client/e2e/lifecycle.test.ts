// Windows that are reloaded, servers that end.

import assert from "node:assert/strict";

import { isAlive } from "./harness/processes.ts";
import { FIX, RIGHT, WRONG } from "./harness/project.ts";
import { type Scenario, scenario } from "./harness/suite.ts";
import { eventually } from "./harness/wait.ts";

/** The one server of the window, once it runs. */
const agent = ({ server }: Scenario): Promise<number> =>
  eventually("one server runs", () => {
    const running = server.agents();
    return running.length === 1 && running[0];
  });

async function promptStillWorks(it: Scenario): Promise<void> {
  await it.model.forget();
  await it.model.calls(FIX);
  await it.model.text("Fixed.");
  await it.window.prompt("Mend the bug after all");
  await it.window.pressButton(it.window.toast("Allow edit_file: doubling.py?"), "Allow");
  await it.project.becomes("doubling.py", RIGHT);
}

scenario(
  "a window reloaded while a question waits: nothing is allowed, no server is left, prompts work",
  {},
  async (it) => {
    await it.model.calls(FIX);
    await it.window.prompt("Mend the bug");
    await it.window.toast("Allow edit_file: doubling.py?").waitFor();
    const before = await agent(it);

    await it.window.reload();

    await eventually("the server of before the reload ends", () => !isAlive(before));
    await it.window.ready();
    assert.equal(it.project.read("doubling.py"), WRONG);
    assert.equal((await it.model.requests()).length, 1);
    await promptStillWorks(it);
    assert.notEqual(await agent(it), before);
  },
);

scenario("a window reloaded while the model answers and a command runs leaves no process", {}, async (it) => {
  await it.model.calls({ name: "shell", arguments: { command: "echo $$ > pid; exec sleep 600" } });
  await it.window.prompt("Run something long");
  await it.window.pressButton(it.window.toast("Allow shell"), "Allow");
  const command = await eventually("the command runs", () => Number(it.project.read("pid")));
  const before = await agent(it);

  await it.window.reload();

  await eventually("server and command end", () => !isAlive(before) && !isAlive(command));
  await it.window.ready();
  await promptStillWorks(it);
});

scenario("a window closed while the model answers leaves no process", {}, async (it) => {
  await it.model.text("This takes a while", "hang");
  await it.window.prompt("Take your time");
  await eventually("the model was asked", async () => (await it.model.requests()).length === 1);
  const before = await agent(it);

  await it.window.leave();

  await eventually("the model's answer is left", () => it.model.left());
  await eventually("the server ends", () => !isAlive(before));
});

scenario("a server that is killed is started again with the next prompt", {}, async (it) => {
  await it.model.text("Here I am.");
  await it.window.prompt("Are you there?");
  await it.window.running(false);
  const before = await agent(it);

  process.kill(before, "SIGKILL");

  await eventually("the server is gone", () => !isAlive(before));
  await promptStillWorks(it);
});
