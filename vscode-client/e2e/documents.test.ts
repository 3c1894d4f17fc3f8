// The agent and the user in the same file.

import assert from "node:assert/strict";

import { FIX, RIGHT, WRONG } from "./harness/project.ts";
import { scenario } from "./harness/suite.ts";

const TYPED = "# typed";

scenario("unsaved text survives the agent's edit, and one undo takes the edit back", {}, async (it) => {
  await it.model.calls({ name: "read_file", arguments: { path: "doubling.py" } });
  await it.model.calls(FIX);
  await it.model.text("Fixed.");
  const { window } = it;
  await window.openFile("doubling.py");
  await window.focusEnd("doubling.py");
  await window.page.keyboard.type(TYPED);

  await window.prompt("Mend the bug");
  await window.pressButton(window.toast("Allow edit_file"), "Allow");
  await window.shows(window.editor("doubling.py"), RIGHT + TYPED);
  await window.running(false);

  const requests = await it.model.requests();
  assert.match(requests[1]!.messages.at(-1)!.content!, /# typed/); // the agent reads what is not saved
  await window.focusEnd("doubling.py");
  await window.press("Control+z");
  await window.shows(window.editor("doubling.py"), WRONG + TYPED);
  await window.press("Control+s");
  await it.project.becomes("doubling.py", WRONG + TYPED);
});

scenario("an open file without unsaved text is edited and saved", {}, async (it) => {
  await it.model.calls(FIX);
  await it.model.text("Fixed.");
  await it.window.openFile("doubling.py");

  await it.window.prompt("Mend the bug");
  await it.window.pressButton(it.window.toast("Allow edit_file"), "Allow");

  await it.project.becomes("doubling.py", RIGHT);
  await it.window.shows(it.window.editor("doubling.py"), RIGHT);
});

scenario("a folder with spaces and letters beyond ASCII", { folder: "Übungen für Zoë – 練習 #1 %41" }, async (it) => {
  await it.model.calls(FIX);
  await it.model.calls({ name: "write_file", arguments: { path: "neu – ñ.py", content: "x = 1\n" } });
  await it.model.text("Fixed.");
  await it.window.openFile("doubling.py");

  await it.window.prompt("Mend the bug — bitte");
  await it.window.pressButton(it.window.toast("Allow edit_file: doubling.py?"), "Allow");
  await it.window.pressButton(it.window.toast("Allow write_file: neu – ñ.py?"), "Allow");

  await it.project.becomes("doubling.py", RIGHT);
  await it.project.becomes("neu – ñ.py", "x = 1\n");
  const [first] = await it.model.requests();
  assert.match(first!.messages.at(-1)!.content!, /^Mend the bug — bitte/);
});
