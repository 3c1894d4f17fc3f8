/** What the event stream comes to. */

import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { Conversation } from "../src/conversation";
import { eventParams, type AgentEvent } from "../src/events";
import { list } from "../src/shape";

const USAGE = { input_tokens: 1, output_tokens: 2, cached_tokens: 0, cost: null };

function play(...events: readonly AgentEvent[]): Conversation {
  const conversation = new Conversation("s1");
  for (const event of events) {
    conversation.apply("t1", event);
  }
  return conversation;
}

const BEGIN: AgentEvent = { type: "turn_started", prompt: "Fix it\nplease" };

function finished(is_error: boolean, code: string | null, handler_ran: boolean): AgentEvent {
  const result = { content: "done", is_error, code, metadata: {} };
  return { type: "tool_finished", tool: "shell", call_id: "c", result, phase: "run", handler_ran };
}

test("an answer grows in one item, and the next one begins another", () => {
  const { turns, title } = play(
    BEGIN,
    { type: "reasoning_delta", text: "hm" },
    { type: "text_delta", text: "I " },
    { type: "text_delta", text: "see." },
    { type: "assistant_replied", content: "I see.", tool_calls: [], usage: USAGE },
    { type: "text_delta", text: "More" },
  );
  expect(title).toBe("Fix it");
  expect(turns[0]?.items).toMatchObject([
    { kind: "reasoning", text: "hm", done: true },
    { kind: "text", text: "I see.", done: true },
    { kind: "text", text: "More", done: false },
  ]);
  expect(turns[0]?.tokens).toBe(3);
});

test("an answer that was not streamed is shown too", () => {
  const { turns } = play(BEGIN, { type: "assistant_replied", content: "Hello", tool_calls: [], usage: USAGE });
  expect(turns[0]?.items).toMatchObject([{ kind: "text", text: "Hello", done: true }]);
});

test("a retry takes back what was streamed of the failed request", () => {
  const { turns } = play(
    BEGIN,
    { type: "text_delta", text: "Half" },
    { type: "model_retry", attempt: 1, delay: 2, reason: "503" },
    { type: "text_delta", text: "Whole" },
  );
  expect(turns[0]?.items).toMatchObject([
    { kind: "note", text: "503; trying again in 2.0 s" },
    { kind: "text", text: "Whole" },
  ]);
});

test.each([
  ["ok", finished(false, null, true)],
  ["error", finished(true, "exit", true)],
  ["denied", finished(true, "permission_denied", false)],
  ["cancelled", finished(true, "cancelled", true)],
])("a call ends as %s", (state, end) => {
  const { turns } = play(
    BEGIN,
    { type: "permission_decided", tool: "shell", call_id: "c", behavior: "ask", source: "mode", reason: "" },
    { type: "tool_started", tool: "shell", call_id: "c", arguments: { command: "make" } },
    { type: "tool_output", call_id: "c", text: "out" },
    { type: "file_changed", call_id: "c", path: "a.py" },
    end,
  );
  expect(turns[0]?.items).toMatchObject([
    { kind: "call", state, arguments: { command: "make" }, output: "out", result: "done", changes: ["a.py"] },
  ]);
});

test("ids of calls that come again, and those of sub-agents, name calls of their own", () => {
  const inner: AgentEvent = { type: "tool_started", tool: "search", call_id: "c", arguments: {} };
  const { turns } = play(
    BEGIN,
    { type: "tool_started", tool: "shell", call_id: "c", arguments: {} },
    { type: "subagent_event", agent: "reader", call_id: "c", event: inner },
    finished(false, null, true),
    { type: "tool_started", tool: "shell", call_id: "c", arguments: {} },
  );
  expect(turns[0]?.items).toMatchObject([
    { tool: "shell", agent: null, state: "ok" },
    { tool: "search", agent: "reader", state: "running" },
    { tool: "shell", agent: null, state: "running" },
  ]);
});

test("a turn that ends leaves nothing running", () => {
  const { turns, running } = play(
    BEGIN,
    { type: "tool_started", tool: "shell", call_id: "c", arguments: {} },
    {
      type: "turn_finished",
      stop_reason: "cancelled",
      text: "",
      changes: ["b.py"],
      usage: USAGE,
      session_usage: USAGE,
      error: null,
      validation: null,
    },
  );
  expect(running).toBe(false);
  expect(turns[0]).toMatchObject({ state: "cancelled", changes: ["b.py"], items: [{ state: "cancelled" }] });
});

test("a server that is gone ends the turn", () => {
  const conversation = play(BEGIN);
  conversation.interrupt();
  expect(conversation.turns[0]).toMatchObject({
    state: "cancelled",
    error: "The server ended before the turn was over.",
  });
});

test("validation without a prompt runs no turn", () => {
  const conversation = play({ type: "validation_started", attempt: 1, limit: 1, validators: ["ruff"] });
  expect(conversation.running).toBe(false);
  expect(conversation.turns[0]?.items).toMatchObject([{ kind: "validation", report: null }]);
});

test("the golden stream is shown, in order, and changes name their items", () => {
  const text = readFileSync(new URL("../../tests/golden/agent-event.json", import.meta.url), "utf8");
  const conversation = new Conversation("s1");
  const changed = list(eventParams)(JSON.parse(text)).map(({ turnId, event }) => {
    const { items } = conversation.apply(turnId, event);
    return items === "all" ? items : items.map(({ kind }) => kind);
  });
  expect(conversation.turns).toHaveLength(1);
  expect(conversation.turns[0]?.items.map(({ kind, agent }) => (agent === null ? kind : `${agent}: ${kind}`))).toEqual([
    "note",
    "text",
    "note",
    "note",
    "note",
    "note",
    "call",
    "reader: text",
    "note",
    "validation",
  ]);
  expect(conversation.turns[0]?.state).toBe("validation_failed");
  expect(changed[0]).toBe("all");
  expect(changed[1]).toEqual(["text"]);
});
