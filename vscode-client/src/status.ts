/** The status bar: what the agent does, what waits for an answer. */

import { StatusBarAlignment, ThemeColor, window, type Disposable, type StatusBarItem } from "vscode";

import type { Approvals } from "./approvals";
import type { Server } from "./server";
import type { Turns } from "./turns";

export class Status implements Disposable {
  private readonly agent: StatusBarItem;
  private readonly waiting: StatusBarItem;
  private readonly subscriptions: readonly Disposable[];

  constructor(
    private readonly server: Server,
    private readonly turns: Turns,
    private readonly approvals: Approvals,
  ) {
    this.agent = window.createStatusBarItem("agentLsp.agent", StatusBarAlignment.Left, 10);
    this.agent.name = "Agent";
    this.waiting = window.createStatusBarItem("agentLsp.approvals", StatusBarAlignment.Left, 9);
    this.waiting.name = "Agent: Pending Approvals";
    this.waiting.command = "agentLsp.reviewApprovals";
    this.waiting.backgroundColor = new ThemeColor("statusBarItem.warningBackground");
    const update = () => this.update();
    this.subscriptions = [server.onDidChangeState(update), turns.onDidChange(update), approvals.onDidChange(update)];
    this.update();
    this.agent.show();
  }

  dispose(): void {
    for (const each of [this.agent, this.waiting, ...this.subscriptions]) {
      each.dispose();
    }
  }

  private update(): void {
    const running = this.turns.running;
    const { kind } = this.server.state;
    const icon = running > 0 || kind === "starting" ? "$(loading~spin)" : kind === "failed" ? "$(error)" : "$(hubot)";
    const label = running > 0 ? "Agent: running" : kind === "starting" ? "Agent: starting" : "Agent";
    this.agent.text = `${icon} ${label}`;
    this.agent.command =
      running > 0 ? "agentLsp.cancel" : kind === "failed" ? "agentLsp.showLog" : "agentLsp.runPrompt";
    this.agent.tooltip =
      running > 0
        ? "The agent is working. Click to cancel."
        : kind === "failed"
          ? "The agent's server does not run. Click to show its log."
          : "Run a prompt";
    const count = this.approvals.questions.length;
    this.waiting.text = `$(question) ${count} to approve`;
    this.waiting.tooltip =
      count === 1
        ? "A question of the agent waits for your answer"
        : `${count} questions of the agent wait for your answer`;
    if (count > 0) {
      this.waiting.show();
    } else {
      this.waiting.hide();
    }
  }
}
