/** What happened in a turn, as nodes. */

import type { CallItem, Item, NoteItem, TextItem, Turn, ValidationItem } from "../items";
import type { Finding } from "../protocol";
import type { FromView } from "../view/messages";
import { argumentsDiff, diffBlock } from "./diff";
import { button, element, folded } from "./dom";
import type { Markdown } from "./markdown";

export interface Tools {
  readonly markdown: Markdown;
  readonly send: (message: FromView) => void;
}

const CALL_STATES: Readonly<Record<CallItem["state"], string>> = {
  asked: "· waits for you",
  running: "· runs",
  ok: "✓",
  error: "✗ failed",
  denied: "⊘ denied",
  cancelled: "⊘ cancelled",
};

const ENDINGS: Readonly<Record<Turn["state"], string>> = {
  running: "",
  completed: "",
  stopped_by_hook: "Stopped by a hook.",
  rejected: "A hook rejected the prompt.",
  validation_failed: "Validation failed.",
  limit: "Stopped at a limit.",
  cancelled: "Cancelled.",
  failed: "Failed.",
};

export function itemNode(item: Item, tools: Tools): HTMLElement {
  const node = content(item, tools);
  node.dataset.item = item.id;
  if (item.agent !== null) {
    node.classList.add("inner");
    node.prepend(element("p", { class: "agent" }, item.agent));
  }
  return node;
}

function content(item: Item, tools: Tools): HTMLElement {
  switch (item.kind) {
    case "text":
    case "reasoning":
      return textNode(item, tools);
    case "call":
      return callNode(item);
    case "note":
      return noteNode(item);
    case "validation":
      return validationNode(item, tools);
  }
}

function textNode(item: TextItem, { markdown }: Tools): HTMLElement {
  const text = element("div", { class: "markdown" }, markdown.render(item.text));
  if (item.kind === "text") {
    return element("div", {}, text);
  }
  return element("div", {}, folded(`fold ${item.id}`, ["Reasoning"], [text], false, { class: "reasoning" }));
}

function callNode(item: CallItem): HTMLElement {
  const diff = argumentsDiff(item.arguments);
  const result = item.result === "" ? item.output : item.result;
  const parts: Node[] = [
    diff === undefined ? element("pre", { tabindex: "0" }, shownArguments(item.arguments)) : diffBlock(diff),
    ...(result === "" ? [] : [element("pre", { class: "result", tabindex: "0" }, result)]),
  ];
  const state = element("span", { class: `state ${item.state}` }, CALL_STATES[item.state]);
  const about = item.target === "" ? target(item.arguments) : item.target;
  const summary = [element("code", {}, item.tool), ` ${about} `, state];
  return element("div", { class: "call" }, folded(`fold ${item.id}`, summary, parts, false));
}

/** What a call is about, in one line. */
function target(args: Readonly<Record<string, unknown>>): string {
  const named = ["path", "command", "pattern", "url", "name", "subject"].map((key) => args[key]);
  return named.find((value) => typeof value === "string")?.split("\n", 1)[0] ?? "";
}

function shownArguments(args: Readonly<Record<string, unknown>>): string {
  return typeof args.command === "string" ? `$ ${args.command}` : JSON.stringify(args, undefined, 2);
}

function noteNode({ level, text }: NoteItem): HTMLElement {
  return element("p", { class: `note ${level}` }, text);
}

function validationNode(item: ValidationItem, tools: Tools): HTMLElement {
  const { report, validators } = item;
  const status = report?.status ?? "running";
  const titles = {
    running: "Validation runs…",
    green: "✓ Validation passed",
    red: "✗ Validation failed",
    refused: "Validation was not run: not trusted",
    none: "Nothing to validate",
  };
  const runs = validators.map((run) => {
    const took = run.duration > 0 ? `, ${run.duration.toFixed(1)} s` : "";
    const summary = [
      `${run.status === "running" ? "…" : run.status === "passed" || run.status === "green" ? "✓" : "✗"} ${run.name} (${run.status}${took})`,
    ];
    const detail = [run.command === "" ? "" : `$ ${run.command}\n`, run.output].join("");
    return folded(`fold ${item.id} ${run.name}`, summary, [element("pre", { tabindex: "0" }, detail)], false);
  });
  const round = item.attempt > 1 ? ` (round ${item.attempt} of ${item.limit})` : "";
  return element(
    "section",
    { class: `validation ${status}`, "aria-label": "Validation" },
    element("h3", {}, titles[status] + round),
    ...runs,
    ...findingNodes(report?.findings ?? [], tools),
    ...(report?.notes ?? []).map((note) => element("p", { class: "note info" }, note)),
    ...(status === "refused"
      ? [button("Trust…", () => tools.send({ type: "run", command: "agentLsp.trust" }), { class: "secondary" })]
      : []),
  );
}

function findingNodes(findings: readonly Finding[], { send }: Tools): Node[] {
  if (findings.length === 0) {
    return [];
  }
  const entries = findings.map(({ path, line, column, message, code, tool, already_failing: old }) => {
    const place = `${path}:${line}`;
    const what = [tool, code].filter((part) => part !== "").join(" ");
    return element(
      "li",
      {},
      button(place, () => send({ type: "openFile", path, line, column }), { class: "link", role: "link" }),
      ` ${what}: ${message}${old ? " (already failing before)" : ""}`,
    );
  });
  return [element("ul", { class: "findings" }, ...entries)];
}

/** What stands below a turn that is over: how it ended, and the files that it changed. */
export function endNode(turn: Turn, { send }: Tools): HTMLElement {
  const end = element("div", { class: "end" });
  const ending = turn.error ?? ENDINGS[turn.state];
  if (ending !== "") {
    end.append(element("p", { class: turn.state === "failed" ? "note error" : "note info" }, ending));
  }
  if (turn.changes.length > 0 && turn.state !== "running") {
    const files = turn.changes.map((path) =>
      element(
        "li",
        {},
        button(path, () => send({ type: "openChange", path, turnId: turn.id }), { class: "link", role: "link" }),
      ),
    );
    end.append(
      element(
        "section",
        { class: "changes", "aria-label": "Changed files" },
        element("h3", {}, "Changed files"),
        element("ul", {}, ...files),
        button("Undo", () => send({ type: "undo", turnId: turn.id }), {
          class: "secondary",
          "aria-label": "Undo the changes of this turn",
        }),
      ),
    );
  }
  return end;
}
