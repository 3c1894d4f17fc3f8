/** The messages beside standard LSP (S4), as shapes and the types of them. `tests/golden` holds an example of each. */

import { boolean, list, map, nullable, number, object, oneOf, pair, string, type Shaped } from "./shape";

export const MODES = ["default", "accept_edits", "plan", "dont_ask", "bypass"] as const;
export type Mode = (typeof MODES)[number];

const position = object({ line: number, character: number });
const range = object({ start: position, end: position });
export type Range = Shaped<typeof range>;

/** A document, or a range of it, that a prompt is about. */
const contextItem = object({ uri: string }, { range });
export type ContextItem = Shaped<typeof contextItem>;

/** The argument of `agent.run` and the parameters of `agent/prompt`. */
export const promptParams = object(
  { prompt: string },
  { context: list(contextItem), sessionId: string, mode: oneOf(MODES), workDoneToken: string },
);
export type PromptParams = Shaped<typeof promptParams>;

export const stopReason = oneOf([
  "completed",
  "stopped_by_hook",
  "rejected",
  "validation_failed",
  "limit",
  "cancelled",
  "failed",
]);
export type StopReason = Shaped<typeof stopReason>;

const finding = object({
  path: string,
  line: number,
  column: number,
  message: string,
  code: string,
  tool: string,
  severity: string,
  already_failing: boolean,
});
export type Finding = Shaped<typeof finding>;

export const validationReport = object({
  status: oneOf(["green", "red", "refused", "none"]),
  failing: list(string),
  already_failing: list(string),
  findings: list(finding),
  notes: list(string),
});
export type ValidationReport = Shaped<typeof validationReport>;

export const promptResult = object({
  sessionId: string,
  turnId: string,
  text: string,
  stopReason,
  usage: object({ inputTokens: number, outputTokens: number }),
  changes: list(string),
  validation: nullable(validationReport),
});
export type PromptResult = Shaped<typeof promptResult>;

/** A part of a change, as ranges of lines from 0, the end excluded; `replaced` are the old lines that do not stay. */
const hunk = object({ before: pair(number), after: pair(number), replaced: pair(number) });
export type Hunk = Shaped<typeof hunk>;

/** The parameters of `agent/requestApproval`. `before` is null for a new file, both texts where no file changes. */
export const approvalRequest = object({
  id: string,
  tool: string,
  target: string,
  reason: string,
  rule: nullable(string),
  uri: nullable(string),
  diff: nullable(string),
  hunks: list(hunk),
  decided: map(boolean),
  before: nullable(string),
  after: nullable(string),
});
export type ApprovalRequest = Shaped<typeof approvalRequest>;

/** The answer to `agent/requestApproval`, or null for none; with an id, the argument of `agent.approvals.answer`. */
export const approvalAnswer = object(
  { decision: oneOf(["allow", "deny"]) },
  { scope: oneOf(["once", "session", "always"]), feedback: string, hunks: list(number) },
);
export type ApprovalAnswer = Shaped<typeof approvalAnswer>;

export const readDocumentParams = object({ uri: string });
export type ReadDocumentParams = Shaped<typeof readDocumentParams>;

export const readDocumentResult = nullable(object({ text: string, version: number }));
export type ReadDocumentResult = Shaped<typeof readDocumentResult>;

export const writeDocumentParams = object({
  uri: string,
  version: number,
  edits: list(object({ range, newText: string })),
  save: boolean,
});
export type WriteDocumentParams = Shaped<typeof writeDocumentParams>;

/** `saved` says whether the file on disk has the text now. */
export const writeDocumentResult = object({ applied: boolean }, { saved: boolean, reason: string });
export type WriteDocumentResult = Shaped<typeof writeDocumentResult>;

export const diagnosticsParams = object({}, { uri: string });
export type DiagnosticsParams = Shaped<typeof diagnosticsParams>;

const diagnostic = object({ range, message: string, severity: number }, { source: string, code: string });
export type Diagnostic = Shaped<typeof diagnostic>;

/** What the editor knows to be wrong with each document. */
export const diagnosticsResult = list(
  object({ uri: string, version: nullable(number), diagnostics: list(diagnostic) }),
);
export type DiagnosticsResult = Shaped<typeof diagnosticsResult>;

/** The result of `agent.status`. */
export const statusResult = object({
  root: string,
  mode: nullable(oneOf(MODES)),
  pendingApprovals: number,
  validation: oneOf(["idle", "running", "green", "red", "refused", "stale"]),
  problems: list(string),
});
export type StatusResult = Shaped<typeof statusResult>;

export const modeResult = object({ mode: oneOf(MODES) });

/** The result of `agent.trust`: what the workspace would execute or widen. */
export const trustResult = object({
  items: list(object({ text: string, place: string, trusted: boolean })),
  trusted: boolean,
});
export type TrustResult = Shaped<typeof trustResult>;

/** The result of `agent.hooks`. */
export const hooksResult = object({
  hooks: list(
    object({
      event: string,
      name: string,
      source: string,
      line: number,
      column: number,
      type: string,
      text: string,
      blocking: boolean,
      trusted: boolean,
      lastMismatch: nullable(string),
    }),
  ),
  problems: list(string),
  runs: list(
    object({
      event: string,
      name: string,
      subject: string,
      decision: string,
      reason: string,
      started: number,
      duration: number,
    }),
  ),
});
export type HooksResult = Shaped<typeof hooksResult>;

/** An entry of `agent.session.list`; times are seconds since the epoch. */
export const sessionEntry = object({
  sessionId: string,
  title: string,
  updated: nullable(number),
  turns: number,
  open: boolean,
  running: boolean,
  current: boolean,
  elsewhere: boolean,
});
export type SessionEntry = Shaped<typeof sessionEntry>;

export const resumeResult = object({ sessionId: string, title: string, interrupted: boolean });

export const transcriptResult = object({ sessionId: string, markdown: string });

/** The result of `agent.undo`. */
export const undoResult = object({
  sessionId: string,
  restored: list(object({ path: string, uri: string, what: string, unsaved: boolean })),
  refused: list(object({ path: string, uri: string, reason: string, diff: nullable(string) })),
  notCovered: list(string),
});
export type UndoResult = Shaped<typeof undoResult>;
