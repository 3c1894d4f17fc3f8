/** The status bar: what the agent does, its mode, what waits for an answer, what validation came to. */

import { StatusBarAlignment, ThemeColor, commands, window, type Disposable, type StatusBarItem } from "vscode";

import type { Approvals } from "./approvals";
import type { CallItem, ValidationItem } from "./items";
import type { Modes } from "./modes";
import type { Prompts } from "./prompts";
import type { Server } from "./server";
import type { Sessions } from "./sessions";
import { plain } from "./text";

interface Look {
  readonly text: string;
  readonly tooltip: string;
  readonly command: string;
  readonly background?: string;
}

export class Status implements Disposable {
  private readonly agent = item("agentLsp.agent", "Agent", 13);
  private readonly mode = item("agentLsp.mode", "Agent: Mode", 12);
  private readonly waiting = item("agentLsp.approvals", "Agent: Pending Approvals", 11);
  private readonly validation = item("agentLsp.validation", "Agent: Validation", 10);
  private readonly subscriptions: readonly Disposable[];

  constructor(
    private readonly server: Server,
    private readonly prompts: Prompts,
    private readonly sessions: Sessions,
    private readonly approvals: Approvals,
    private readonly modes: Modes,
  ) {
    this.subscriptions = [server.onDidChangeState, prompts.onDidChange, sessions.onDidChange, modes.onDidChange]
      .map((event) => event(() => this.update()))
      .concat(approvals.onDidChange(() => this.update()));
    this.update();
  }

  dispose(): void {
    for (const each of [this.agent, this.mode, this.waiting, this.validation, ...this.subscriptions]) {
      each.dispose();
    }
  }

  private update(): void {
    const running = this.prompts.count > 0 || this.sessions.running.length > 0;
    const count = this.approvals.questions.length;
    show(this.agent, running ? runningLook(this.activity()) : idleLook(this.server));
    show(this.mode, this.server.state.kind === "running" ? modeLook(this.modes.current) : undefined);
    show(this.waiting, count > 0 ? waitingLook(count) : undefined);
    show(this.validation, validationLook(this.lastValidation()));
    void commands.executeCommand("setContext", "agentLsp.running", running);
    void commands.executeCommand("setContext", "agentLsp.waiting", count);
  }

  /** The tool that runs now. */
  private activity(): string {
    const items = this.sessions.running.at(-1)?.turns.at(-1)?.items ?? [];
    const call = items.findLast((each): each is CallItem => each.kind === "call" && each.state === "running");
    const validation = items.at(-1);
    return call?.tool ?? (validation?.kind === "validation" && validation.report === null ? "validation" : "");
  }

  private lastValidation(): ValidationItem | undefined {
    const items = this.sessions.current?.turns.flatMap((turn) => turn.items) ?? [];
    return items.findLast((each): each is ValidationItem => each.kind === "validation");
  }
}

function item(id: string, name: string, priority: number): StatusBarItem {
  const made = window.createStatusBarItem(id, StatusBarAlignment.Left, priority);
  made.name = name;
  return made;
}

function show(bar: StatusBarItem, look: Look | undefined): void {
  if (look === undefined) {
    bar.hide();
    return;
  }
  bar.text = look.text;
  bar.tooltip = look.tooltip;
  bar.command = look.command;
  bar.backgroundColor = look.background === undefined ? undefined : new ThemeColor(look.background);
  bar.show();
}

function runningLook(activity: string): Look {
  return {
    text: `$(loading~spin) Agent: ${activity === "" ? "running" : plain(activity)}`,
    tooltip: "The agent is working. Click to cancel.",
    command: "agentLsp.cancel",
  };
}

function idleLook({ state }: Server): Look {
  switch (state.kind) {
    case "starting":
      return {
        text: "$(loading~spin) Agent: starting",
        tooltip: "The agent is starting.",
        command: "agentLsp.showLog",
      };
    case "failed":
      return {
        text: "$(error) Agent",
        tooltip: `The agent does not run: ${plain(state.message)} Click to show the log.`,
        command: "agentLsp.showLog",
        background: "statusBarItem.errorBackground",
      };
    case "running":
    case "stopped":
      return { text: "$(hubot) Agent", tooltip: "Run a prompt", command: "agentLsp.runPrompt" };
  }
}

function modeLook(mode: string | undefined): Look | undefined {
  const label = mode?.replaceAll("_", " ");
  return label === undefined
    ? undefined
    : {
        text: label,
        tooltip: `The agent's permission mode is “${label}”. Click to set it.`,
        command: "agentLsp.setMode",
      };
}

function waitingLook(count: number): Look {
  return {
    text: `$(question) ${count} to approve`,
    tooltip:
      count === 1
        ? "A question of the agent waits for your answer"
        : `${count} questions of the agent wait for your answer`,
    command: "agentLsp.reviewApprovals",
    background: "statusBarItem.warningBackground",
  };
}

function validationLook(validation: ValidationItem | undefined): Look | undefined {
  if (validation === undefined) {
    return undefined;
  }
  const { report } = validation;
  switch (report?.status) {
    case undefined:
      return {
        text: "$(loading~spin) Validation",
        tooltip: "Linters and tests are running",
        command: "agentLsp.focus",
      };
    case "green":
      return { text: "$(pass) Validation", tooltip: "Linters and tests passed", command: "agentLsp.runValidation" };
    case "red":
      return {
        text: "$(error) Validation",
        tooltip: `Failed: ${plain(report.failing.join(", "))}. Click to show the problems.`,
        command: "workbench.actions.view.problems",
      };
    case "refused":
      return {
        text: "$(shield) Validation",
        tooltip: "Not run: the workspace is not trusted",
        command: "agentLsp.trust",
      };
    case "none":
      return undefined;
  }
}
