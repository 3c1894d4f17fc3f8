// The agent view.

import assert from "node:assert/strict";

import { FIX, RIGHT } from "./harness/project.ts";
import { scenario } from "./harness/suite.ts";
import { eventually } from "./harness/wait.ts";

scenario("a prompt is typed into the view, allowed there, and its answer read there", {}, async (it) => {
  const { window } = it;
  await it.model.calls(FIX);
  await it.model.text("It **doubles** now, <script>alert(1)</script> and `2 * 2`.");

  await window.command("Agent: Focus on Prompt");
  await window.view.locator("#text:focus").waitFor();
  await window.page.keyboard.type("Mend the bug");
  await window.press("Enter");
  const card = window.view.locator("#questions").getByRole("button", { name: "Allow", exact: true });
  await card.waitFor();
  await window.guard();
  await card.click();

  await it.project.becomes("doubling.py", RIGHT);
  const transcript = window.view.locator("#transcript");
  await transcript.locator("strong", { hasText: "doubles" }).waitFor();
  assert.match((await transcript.textContent())!, /<script>alert\(1\)<\/script>/); // the model's text is text
  assert.equal(await transcript.locator("script").count(), 0);
  const [first] = await it.model.requests();
  assert.equal(first?.messages.at(-1)?.content, "Mend the bug");
});

scenario("a prompt that runs is cancelled in the view", {}, async (it) => {
  const { window } = it;
  await it.model.text("This takes a while", "hang");
  await window.prompt("Take your time");
  await window.view.locator("#transcript", { hasText: "This takes a" }).waitFor();

  await window.view.locator("#cancel").click();

  await eventually("the model's answer is left", () => it.model.left());
  await window.running(false);
});

scenario("a transcript is there again after the view was hidden", {}, async (it) => {
  const { window } = it;
  await it.model.text("Remember the hazelnuts.");
  await window.prompt("What is it?");
  await window.view.locator("#transcript", { hasText: "hazelnuts" }).waitFor();

  await window.command("View: Show Explorer");
  await window.page.locator(".explorer-viewlet").waitFor();
  await window.command("Agent: Focus on Prompt");

  await window.view.locator("#transcript", { hasText: "hazelnuts" }).waitFor();
});
