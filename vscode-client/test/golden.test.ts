/** The custom messages against the JSON in `tests/golden`, which the server's tests read too. */

import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { eventParams } from "../src/events";
import {
  approvalAnswer,
  approvalRequest,
  diagnosticsParams,
  diagnosticsResult,
  promptParams,
  promptResult,
  readDocumentParams,
  readDocumentResult,
  writeDocumentParams,
  writeDocumentResult,
} from "../src/protocol";
import { list, nullable, object } from "../src/shape";

const messages = {
  "agent-event": list(eventParams),
  "agent-prompt": object({ params: promptParams, result: promptResult }),
  "agent-requestApproval": object({ params: list(approvalRequest), answers: list(nullable(approvalAnswer)) }),
  "agent-readDocument": object({ params: readDocumentParams, results: list(readDocumentResult) }),
  "agent-writeDocument": object({ params: writeDocumentParams, results: list(writeDocumentResult) }),
  "agent-diagnostics": object({ params: list(diagnosticsParams), result: diagnosticsResult }),
};

test.each(Object.entries(messages))("%s is read whole", (name, shape) => {
  const text = readFileSync(new URL(`../../tests/golden/${name}.json`, import.meta.url), "utf8");
  const golden: unknown = JSON.parse(text);
  expect(shape(golden)).toEqual(golden); // a field that the shape does not know would be missing
});

test("what is not known, or of another shape, is named", () => {
  const event = { sessionId: "s", turnId: null, seq: 1, event: { type: "else" } };
  expect(() => eventParams(event)).toThrow("value.event.type: else is not known");
  expect(() => eventParams({ ...event, event: { type: "text_delta", text: 1 } })).toThrow(
    "value.event.text: expected a string",
  );
});
