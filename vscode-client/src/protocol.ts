/** What goes over the wire beside standard LSP (S4); `tests/golden` holds an example of each message. */

export interface Position {
  readonly line: number;
  readonly character: number;
}

export interface Range {
  readonly start: Position;
  readonly end: Position;
}

/** A document, or a range of it, that a prompt is about. */
export interface ContextItem {
  readonly uri: string;
  readonly range?: Range;
}

/** The argument of `agent.run` and the parameters of `agent/prompt`. */
export interface PromptParams {
  readonly prompt: string;
  readonly context?: readonly ContextItem[];
  readonly sessionId?: string;
  readonly mode?: Mode;
}

export const MODES = ["default", "accept_edits", "plan", "dont_ask", "bypass"] as const;
export type Mode = (typeof MODES)[number];

export interface PromptResult {
  readonly sessionId: string;
  readonly turnId: string;
  readonly text: string;
  readonly stopReason: StopReason;
  readonly usage: { readonly inputTokens: number; readonly outputTokens: number };
  readonly changes: readonly string[];
  readonly validation: ValidationReport | null;
}

export type StopReason =
  "completed" | "stopped_by_hook" | "rejected" | "validation_failed" | "limit" | "cancelled" | "failed";

/** A part of a change: lines from 0, the end excluded, in the old and the new text. */
export interface Hunk {
  readonly before: readonly [number, number];
  readonly after: readonly [number, number];
}

/** The parameters of `agent/requestApproval`, and an entry of `agent.approvals.list`. */
export interface ApprovalRequest {
  readonly id: string;
  readonly tool: string;
  readonly target: string;
  readonly reason: string;
  readonly rule: string | null;
  readonly uri: string | null;
  readonly diff: string | null;
  readonly hunks: readonly Hunk[];
  readonly decided: Readonly<Record<string, boolean>>;
}

export type Scope = "once" | "session" | "always";

/** The answer to `agent/requestApproval`, and with an id the argument of `agent.approvals.answer`. */
export interface ApprovalAnswer {
  readonly decision: "allow" | "deny";
  readonly scope?: Scope;
  readonly feedback?: string;
  readonly hunks?: readonly number[];
}

export interface Usage {
  readonly input_tokens: number;
  readonly output_tokens: number;
}

export interface Finding {
  readonly path: string;
  readonly line: number;
  readonly column: number;
  readonly message: string;
  readonly code: string;
  readonly tool: string;
  readonly severity: string;
  readonly already_failing: boolean;
}

export interface ValidationReport {
  readonly status: "green" | "red" | "refused" | "none";
  readonly failing: readonly string[];
  readonly already_failing: readonly string[];
  readonly findings: readonly Finding[];
  readonly notes: readonly string[];
}

export interface ToolResult {
  readonly content: string;
  readonly is_error: boolean;
}

/** The closed union of `agent_lsp/agent/events.py`. */
export type AgentEvent =
  | { readonly type: "turn_started"; readonly prompt: string }
  | { readonly type: "text_delta"; readonly text: string }
  | { readonly type: "reasoning_delta"; readonly text: string }
  | { readonly type: "model_retry"; readonly attempt: number; readonly delay: number; readonly reason: string }
  | {
      readonly type: "assistant_replied";
      readonly content: string;
      readonly tool_calls: readonly string[];
      readonly usage: Usage;
    }
  | {
      readonly type: "hook_reached";
      readonly event: string;
      readonly tool: string | null;
      readonly outcome: "ok" | "error" | null;
    }
  | {
      readonly type: "hook_acted";
      readonly phase: string;
      readonly tool: string | null;
      readonly call_id: string | null;
      readonly action: string;
      readonly fired_by: string;
      readonly reason: string;
      readonly paths: readonly string[];
    }
  | {
      readonly type: "hook_failed";
      readonly phase: string;
      readonly tool: string;
      readonly call_id: string;
      readonly error: string;
      readonly handler_ran: boolean;
    }
  | {
      readonly type: "configured_hook_ran";
      readonly name: string;
      readonly event: string;
      readonly subject: string;
      readonly decision: string;
      readonly reason: string;
      readonly duration: number;
      readonly exit_code: number | null;
      readonly message: string;
    }
  | {
      readonly type: "permission_decided";
      readonly tool: string;
      readonly call_id: string;
      readonly behavior: string;
      readonly source: string;
      readonly reason: string;
    }
  | { readonly type: "approval_requested"; readonly id: string; readonly tool: string; readonly target: string }
  | {
      readonly type: "approval_resolved";
      readonly id: string;
      readonly allowed: boolean;
      readonly scope: string;
      readonly feedback: string;
    }
  | {
      readonly type: "tool_started";
      readonly tool: string;
      readonly call_id: string;
      readonly arguments: Readonly<Record<string, unknown>>;
    }
  | { readonly type: "tool_output"; readonly call_id: string; readonly text: string }
  | { readonly type: "file_changed"; readonly call_id: string; readonly path: string }
  | { readonly type: "command_ran"; readonly call_id: string }
  | {
      readonly type: "tool_finished";
      readonly tool: string;
      readonly call_id: string;
      readonly result: ToolResult;
      readonly phase: string;
      readonly handler_ran: boolean;
    }
  | {
      readonly type: "validation_started";
      readonly attempt: number;
      readonly limit: number;
      readonly validators: readonly string[];
    }
  | { readonly type: "validator_started"; readonly name: string; readonly command: string; readonly directory: string }
  | {
      readonly type: "validator_finished";
      readonly name: string;
      readonly status: string;
      readonly duration: number;
      readonly output: string;
      readonly log: string | null;
    }
  | {
      readonly type: "validation_finished";
      readonly attempt: number;
      readonly limit: number;
      readonly report: ValidationReport;
    }
  | {
      readonly type: "turn_finished";
      readonly stop_reason: StopReason;
      readonly text: string;
      readonly changes: readonly string[];
      readonly usage: Usage;
      readonly error: string | null;
      readonly validation: ValidationReport | null;
    }
  | { readonly type: "subagent_event"; readonly agent: string; readonly call_id: string; readonly event: AgentEvent }
  | {
      readonly type: "subagent_finished";
      readonly agent: string;
      readonly call_id: string;
      readonly text: string;
      readonly is_error: boolean;
      readonly usage: Usage;
    };

/** The parameters of the notification `agent/event`. */
export interface EventParams {
  readonly sessionId: string;
  readonly turnId: string | null;
  readonly seq: number;
  readonly event: AgentEvent;
}

export interface TextEdit {
  readonly range: Range;
  readonly newText: string;
}

export interface ReadDocumentParams {
  readonly uri: string;
}

export interface ReadDocumentResult {
  readonly text: string;
  readonly version: number;
}

export interface WriteDocumentParams {
  readonly uri: string;
  readonly version: number;
  readonly edits: readonly TextEdit[];
  readonly save: boolean;
}

export interface WriteDocumentResult {
  readonly applied: boolean;
  /** Whether the file on disk has the text now. */
  readonly saved?: boolean;
  readonly reason?: string;
}

export interface DiagnosticsParams {
  readonly uri?: string;
}

export interface StatusResult {
  readonly root: string;
  readonly folders: readonly string[];
  readonly mode: Mode | null;
  readonly sessions: readonly {
    readonly sessionId: string;
    readonly turnId: string | null;
    readonly running: boolean;
    readonly model: string;
    readonly messages: number;
  }[];
  readonly pendingApprovals: number;
  readonly validation: "idle" | "running" | "green" | "red" | "refused" | "stale";
  readonly problems: readonly string[];
}

export interface TrustResult {
  readonly items: readonly { readonly text: string; readonly place: string; readonly trusted: boolean }[];
  readonly trusted: boolean;
}

export interface Diagnostic {
  readonly range: Range;
  readonly severity: number;
  readonly source?: string;
  readonly code?: string | number;
  readonly message: string;
}

/** What the editor knows to be wrong with one document. */
export interface DocumentDiagnostics {
  readonly uri: string;
  readonly version: number | null;
  readonly diagnostics: readonly Diagnostic[];
}
