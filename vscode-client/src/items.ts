/** What happened in a session, as the human sees it: plain values, so that the agent view gets them as they are. */

import type { StopReason, ValidationReport } from "./protocol";

export interface TextItem {
  readonly kind: "text" | "reasoning";
  readonly id: string;
  readonly agent: string | null;
  text: string;
  /** The answer is complete; what comes next is another. */
  done: boolean;
}

export type CallState = "asked" | "running" | "ok" | "error" | "denied" | "cancelled";

export interface CallItem {
  readonly kind: "call";
  readonly id: string;
  readonly agent: string | null;
  readonly callId: string;
  readonly tool: string;
  /** What it is about, as the human was asked; empty where nobody was asked. */
  target: string;
  state: CallState;
  arguments: Readonly<Record<string, unknown>>;
  output: string;
  result: string;
  readonly changes: string[];
}

export interface NoteItem {
  readonly kind: "note";
  readonly id: string;
  readonly agent: string | null;
  readonly level: "info" | "warning" | "error";
  readonly text: string;
}

export interface ValidatorRun {
  readonly name: string;
  readonly command: string;
  status: string;
  duration: number;
  output: string;
  log: string | null;
}

export interface ValidationItem {
  readonly kind: "validation";
  readonly id: string;
  readonly agent: null;
  readonly attempt: number;
  readonly limit: number;
  readonly validators: ValidatorRun[];
  report: ValidationReport | null;
}

export type Item = TextItem | CallItem | NoteItem | ValidationItem;

export interface Turn {
  readonly id: string;
  readonly prompt: string;
  readonly items: Item[];
  state: "running" | StopReason;
  error: string | null;
  changes: readonly string[];
  tokens: number;
}
