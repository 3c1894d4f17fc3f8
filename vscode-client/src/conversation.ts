/** One session as the human sees it: its turns and what happened in each, made of the event stream alone. */

import type { AgentEvent } from "./events";
import type { CallItem, CallState, Item, NoteItem, TextItem, Turn, ValidationItem } from "./items";
import type { StopReason } from "./protocol";
import { shorten } from "./text";

type ValidationEvent = Extract<AgentEvent, { readonly type: `validat${string}` }>;

const MOST_OUTPUT = 20_000; // characters of a call's live output that are kept: its end

export interface TurnChange {
  readonly turn: Turn;
  /** The items that are new or changed; all where some are gone. */
  readonly items: readonly Item[] | "all";
}

export class Conversation {
  readonly turns: Turn[] = [];
  /** What a stored session held before this window came to it, as Markdown. */
  history = "";
  private number = 0;

  constructor(readonly id: string) {}

  get title(): string {
    return shorten(this.turns[0]?.prompt.split("\n", 1)[0] ?? "New session", 60);
  }

  get running(): boolean {
    return this.turns.at(-1)?.state === "running";
  }

  /** Take an event; returns the turn that it changed, and which of its items. */
  apply(turnId: string | null, event: AgentEvent): TurnChange {
    if (event.type === "turn_started") {
      return { turn: this.begin(turnId, event.prompt, "running"), items: "all" };
    }
    const turn = this.turns.at(-1) ?? this.begin(turnId, "", "completed"); // validation alone is no turn
    return { turn, items: this.change(turn, event, null) };
  }

  /** The server is gone: what ran does not run any more. */
  interrupt(): void {
    const turn = this.turns.at(-1);
    if (turn?.state === "running") {
      this.end(turn, "cancelled", "The server ended before the turn was over.");
    }
  }

  private begin(turnId: string | null, prompt: string, state: Turn["state"]): Turn {
    const id = turnId ?? this.nextId();
    const turn: Turn = { id, prompt, items: [], state, error: null, changes: [], tokens: 0 };
    this.turns.push(turn);
    return turn;
  }

  private change(turn: Turn, event: AgentEvent, agent: string | null): TurnChange["items"] {
    switch (event.type) {
      case "text_delta":
        return [this.write(turn, "text", event.text, agent)];
      case "reasoning_delta":
        return [this.write(turn, "reasoning", event.text, agent)];
      case "assistant_replied":
        turn.tokens += event.usage.input_tokens + event.usage.output_tokens;
        return this.complete(turn, event.content, agent);
      case "model_retry":
        this.forget(turn, agent);
        this.note(turn, "info", `${event.reason}; trying again in ${event.delay.toFixed(1)} s`, agent);
        return "all";
      case "history_compacted": {
        turn.tokens += event.usage.input_tokens + event.usage.output_tokens;
        const { how, tokens_before: before, tokens_after: after } = event;
        const text = `The model is shown a shorter conversation (${how}): ${before.toLocaleString("en")} → ${after.toLocaleString("en")} tokens`;
        return [this.note(turn, "info", text, agent)];
      }
      case "hook_acted":
        return [this.note(turn, "warning", hookText(event), agent)];
      case "hook_failed":
        return [this.note(turn, "error", `A hook failed at ${event.tool}: ${event.error}`, agent)];
      case "configured_hook_ran": {
        const { name, decision, message, reason } = event;
        const said = [`Hook ${name} (${event.event}) ${decision}`, message, reason].filter((part) => part !== "");
        return message !== "" || decision !== "passed" ? [this.note(turn, "info", said.join(": "), agent)] : [];
      }
      case "permission_decided": {
        const call = this.call(turn, event.call_id, event.tool, agent);
        call.state = event.behavior === "ask" ? "asked" : "running";
        return [call];
      }
      case "approval_requested": {
        const call = turn.items.find((item): item is CallItem => isAsked(item, event.tool, agent));
        return call === undefined ? [] : [Object.assign(call, { target: event.target })];
      }
      case "tool_started": {
        const call = this.call(turn, event.call_id, event.tool, agent);
        return [Object.assign(call, { state: "running", arguments: event.arguments })];
      }
      case "tool_output": {
        const call = this.find(turn, event.call_id, agent);
        return call === undefined
          ? []
          : [Object.assign(call, { output: (call.output + event.text).slice(-MOST_OUTPUT) })];
      }
      case "file_changed": {
        turn.changes = [...new Set([...turn.changes, event.path])];
        const call = this.find(turn, event.call_id, agent);
        call?.changes.push(event.path);
        return call === undefined ? [] : [call];
      }
      case "tool_finished": {
        const call = this.call(turn, event.call_id, event.tool, agent);
        call.result = event.result.content;
        call.state = finishedState(event.result.is_error, event.result.code, event.handler_ran);
        return [call];
      }
      case "save_awaited":
        return [
          this.note(turn, "warning", `Waits until you have saved ${event.files.join(", ")}, or go on without.`, agent),
        ];
      case "subagent_event":
        return this.change(turn, event.event, event.agent);
      case "subagent_finished":
        return event.is_error ? [this.note(turn, "error", event.text, event.agent)] : [];
      case "validation_started":
      case "validator_started":
      case "validator_finished":
      case "validation_finished":
        return this.validate(turn, event);
      case "turn_finished":
        turn.changes = event.changes;
        this.end(turn, event.stop_reason, event.error);
        return "all";
      case "turn_started":
      case "hook_reached":
      case "approval_resolved":
      case "command_ran":
        return [];
    }
  }

  private validate(turn: Turn, event: ValidationEvent): readonly Item[] {
    if (event.type === "validation_started") {
      const { attempt, limit } = event;
      const id = this.nextId();
      return [this.add(turn, { kind: "validation", id, agent: null, attempt, limit, validators: [], report: null })];
    }
    const round = turn.items.findLast((item): item is ValidationItem => item.kind === "validation");
    if (round === undefined) {
      return [];
    }
    switch (event.type) {
      case "validator_started": {
        const { name, command } = event;
        round.validators.push({ name, command, status: "running", duration: 0, output: "", log: null });
        break;
      }
      case "validator_finished": {
        const { name, status, duration, output, log } = event;
        const begun = round.validators.find((each) => each.name === name && each.status === "running");
        if (begun === undefined) {
          round.validators.push({ name, command: "", status, duration, output, log });
        } else {
          Object.assign(begun, { status, duration, output, log });
        }
        break;
      }
      case "validation_finished":
        round.report = event.report;
        break;
    }
    return [round];
  }

  private end(turn: Turn, state: StopReason, error: string | null): void {
    turn.state = state;
    turn.error = error;
    for (const item of turn.items) {
      if (item.kind === "call" && (item.state === "running" || item.state === "asked")) {
        item.state = "cancelled";
      }
    }
  }

  private write(turn: Turn, kind: TextItem["kind"], text: string, agent: string | null): TextItem {
    const last = turn.items.at(-1);
    if (last?.kind === kind && !last.done && last.agent === agent) {
      last.text += text;
      return last;
    }
    return this.add(turn, { kind, id: this.nextId(), agent, text, done: false });
  }

  /** The answer is there whole; it may have come without pieces. */
  private complete(turn: Turn, content: string, agent: string | null): readonly Item[] {
    const streamed = this.open(turn, agent);
    if (content !== "" && !streamed.some(({ kind }) => kind === "text")) {
      streamed.push(this.add(turn, { kind: "text", id: this.nextId(), agent, text: content, done: true }));
    }
    for (const item of streamed) {
      item.done = true;
    }
    return streamed;
  }

  /** What was streamed of a failed request is void. */
  private forget(turn: Turn, agent: string | null): void {
    const void_ = new Set<Item>(this.open(turn, agent));
    turn.items.splice(0, turn.items.length, ...turn.items.filter((item) => !void_.has(item)));
  }

  private open(turn: Turn, agent: string | null): TextItem[] {
    return turn.items.filter(
      (item): item is TextItem =>
        (item.kind === "text" || item.kind === "reasoning") && !item.done && item.agent === agent,
    );
  }

  private note(turn: Turn, level: NoteItem["level"], text: string, agent: string | null): NoteItem {
    return this.add(turn, { kind: "note", id: this.nextId(), agent, level, text });
  }

  private add<I extends Item>(turn: Turn, item: I): I {
    turn.items.push(item);
    return item;
  }

  /** The call with an id that is not over; a new one where there is none. */
  private call(turn: Turn, callId: string, tool: string, agent: string | null): CallItem {
    const found = this.find(turn, callId, agent);
    if (found !== undefined) {
      return found;
    }
    const parts = { target: "", arguments: {}, output: "", result: "", changes: [] };
    return this.add<CallItem>(turn, {
      kind: "call",
      id: this.nextId(),
      agent,
      callId,
      tool,
      state: "running",
      ...parts,
    });
  }

  private find(turn: Turn, callId: string, agent: string | null): CallItem | undefined {
    return turn.items.findLast(
      (item): item is CallItem =>
        item.kind === "call" &&
        item.callId === callId &&
        item.agent === agent &&
        (item.state === "asked" || item.state === "running"),
    );
  }

  private nextId(): string {
    this.number += 1;
    return `${this.id}/${this.number}`;
  }
}

/** Whether a call waits for an answer that was not asked for yet: a question does not name its call. */
function isAsked(item: Item, tool: string, agent: string | null): boolean {
  const { kind } = item;
  return kind === "call" && item.state === "asked" && item.target === "" && item.tool === tool && item.agent === agent;
}

function hookText({ action, tool, fired_by: by, reason }: AgentEvent & { readonly type: "hook_acted" }): string {
  const about = tool === null ? "" : ` ${tool}`;
  return `Hook ${by}: ${action}${about}${reason === "" ? "" : `: ${reason}`}`;
}

function finishedState(isError: boolean, code: string | null, handlerRan: boolean): CallState {
  if (!isError) {
    return "ok";
  }
  if (code === "cancelled") {
    return "cancelled";
  }
  return handlerRan ? "error" : "denied";
}
