/** The one event stream: the closed union of `agent_lsp/agent/events.py`, as `agent/event` brings it. */

import { stopReason, validationReport } from "./protocol";
import {
  boolean,
  json,
  list,
  map,
  nullable,
  number,
  object,
  oneOf,
  string,
  tagged,
  type Shape,
  type Shaped,
} from "./shape";

const usage = object({ input_tokens: number, output_tokens: number, cached_tokens: number, cost: nullable(number) });

const toolResult = object({ content: string, is_error: boolean, code: nullable(string), metadata: map(json) });

const kinds = {
  turn_started: object({ prompt: string }),
  text_delta: object({ text: string }),
  reasoning_delta: object({ text: string }),
  model_retry: object({ attempt: number, delay: number, reason: string }),
  assistant_replied: object({ content: string, tool_calls: list(string), usage }),
  history_compacted: object({
    reason: string,
    how: oneOf(["shortened", "summary", "digest"]),
    tokens_before: number,
    tokens_after: number,
    messages_before: number,
    messages_after: number,
    usage,
  }),
  hook_reached: object({ event: string, tool: nullable(string), outcome: nullable(oneOf(["ok", "error"])) }),
  hook_acted: object({
    phase: string,
    tool: nullable(string),
    call_id: nullable(string),
    action: string,
    fired_by: string,
    reason: string,
    paths: list(string),
  }),
  hook_failed: object({ phase: string, tool: string, call_id: string, error: string, handler_ran: boolean }),
  configured_hook_ran: object({
    name: string,
    event: string,
    subject: string,
    decision: string,
    reason: string,
    duration: number,
    exit_code: nullable(number),
    message: string,
  }),
  permission_decided: object({ tool: string, call_id: string, behavior: string, source: string, reason: string }),
  approval_requested: object({ id: string, tool: string, target: string }),
  approval_resolved: object({ id: string, allowed: boolean, scope: string, feedback: string }),
  tool_started: object({ tool: string, call_id: string, arguments: map(json) }),
  tool_output: object({ call_id: string, text: string }),
  file_changed: object({ call_id: string, path: string }),
  command_ran: object({ call_id: string }),
  tool_finished: object({ tool: string, call_id: string, result: toolResult, phase: string, handler_ran: boolean }),
  subagent_finished: object({ agent: string, call_id: string, text: string, is_error: boolean, usage }),
  save_awaited: object({ files: list(string) }),
  validation_started: object({ attempt: number, limit: number, validators: list(string) }),
  validator_started: object({ name: string, command: string, directory: string }),
  validator_finished: object({
    name: string,
    status: string,
    duration: number,
    output: string,
    log: nullable(string),
  }),
  validation_finished: object({ attempt: number, limit: number, report: validationReport }),
  turn_finished: object({
    stop_reason: stopReason,
    text: string,
    changes: list(string),
    usage,
    session_usage: usage,
    error: nullable(string),
    validation: nullable(validationReport),
  }),
};

const plainEvent = tagged("type", kinds);

/** An event of a sub-agent, which one of the calls started. */
export interface SubagentEvent {
  readonly type: "subagent_event";
  readonly agent: string;
  readonly call_id: string;
  readonly event: AgentEvent;
}

export type AgentEvent = Shaped<typeof plainEvent> | SubagentEvent;

const agentEvent: Shape<AgentEvent> = (value, at) => {
  const { type } = object({ type: string })(value, at);
  return type === "subagent_event"
    ? { type, ...object({ agent: string, call_id: string, event: agentEvent })(value, at) }
    : plainEvent(value, at);
};

/** The parameters of the notification `agent/event`. */
export const eventParams = object({
  sessionId: string,
  turnId: nullable(string),
  seq: number,
  event: agentEvent,
});
export type EventParams = Shaped<typeof eventParams>;
