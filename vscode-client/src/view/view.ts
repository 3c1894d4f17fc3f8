/** The agent view: shows the current session as it grows, and does what the human asks for in it. */

import { commands, window, type Disposable, type Uri, type WebviewView, type WebviewViewProvider } from "vscode";

import type { Approvals } from "../approvals";
import type { Changes } from "../changes";
import type { Failures } from "../failures";
import type { Item, Turn } from "../items";
import type { Modes } from "../modes";
import type { Prompts } from "../prompts";
import { approvalAnswer } from "../protocol";
import type { Server } from "../server";
import type { Change, Sessions } from "../sessions";
import type { Places } from "./places";
import { fromView, type FromView, type ShownState, type ToView } from "./messages";
import { page } from "./page";

export const VIEW_ID = "agentLsp.view";

const UPDATE_MILLISECONDS = 50; // between two updates: pieces of an answer come faster than anybody reads

export interface ViewParts {
  readonly approvals: Approvals;
  readonly changes: Changes;
  readonly failures: Failures;
  readonly modes: Modes;
  readonly places: Places;
  readonly server: Server;
  readonly sessions: Sessions;
}

export class AgentView implements WebviewViewProvider, Disposable {
  private view: WebviewView | undefined;
  private ready = false;
  private focusWhenReady = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** What the view has to be told: all of the session, whole turns, or single items of them. */
  private dirty: { session: boolean; readonly turns: Map<Turn, Set<Item> | "all"> } = {
    session: true,
    turns: new Map(),
  };
  private readonly subscriptions: Disposable[] = [];
  private prompts: Prompts | undefined;

  constructor(
    private readonly extension: Uri,
    private readonly parts: ViewParts,
  ) {
    const { approvals, modes, server, sessions } = parts;
    const update = (): void => this.schedule();
    this.subscriptions.push(
      window.registerWebviewViewProvider(VIEW_ID, this),
      sessions.onDidChange((change) => this.note(change)),
      approvals.onDidChange(update),
      modes.onDidChange(update),
      server.onDidChangeState(update),
    );
  }

  /** Take what runs prompts; it is made after the view, because it brings the view up. */
  connect(prompts: Prompts): void {
    this.prompts = prompts;
    this.subscriptions.push(prompts.onDidChange(() => this.schedule()));
  }

  get visible(): boolean {
    return this.view?.visible ?? false;
  }

  async reveal(): Promise<void> {
    if (this.view === undefined) {
      await commands.executeCommand(`${VIEW_ID}.focus`, { preserveFocus: true });
    } else {
      this.view.show(true);
    }
  }

  async focus(): Promise<void> {
    this.focusWhenReady = true;
    await commands.executeCommand(`${VIEW_ID}.focus`);
    this.schedule();
  }

  resolveWebviewView(view: WebviewView): void {
    this.view = view;
    this.ready = false;
    view.webview.options = { enableScripts: true, localResourceRoots: [this.extension] };
    view.webview.onDidReceiveMessage((message: unknown) => void this.receive(message));
    view.onDidDispose(() => {
      this.view = undefined;
      this.ready = false;
    });
    view.webview.html = page(view.webview, this.extension);
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const each of this.subscriptions) {
      each.dispose();
    }
  }

  private note({ session, change }: Change): void {
    if (session !== this.parts.sessions.current) {
      return;
    }
    if (change === undefined) {
      this.dirty.session = true;
    } else {
      const { turn, items } = change;
      const known = this.dirty.turns.get(turn) ?? new Set();
      this.dirty.turns.set(turn, items === "all" || known === "all" ? "all" : new Set([...known, ...items]));
    }
    this.schedule();
  }

  private schedule(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.update();
    }, UPDATE_MILLISECONDS);
  }

  private update(): void {
    if (this.view === undefined || !this.ready) {
      this.dirty.session = true;
      return;
    }
    const { session, turns } = this.dirty;
    this.dirty = { session: false, turns: new Map() };
    const current = this.parts.sessions.current;
    if (session) {
      const shown =
        current === undefined
          ? null
          : { id: current.id, title: current.title, history: current.history, turns: current.turns };
      this.post({ type: "session", session: shown });
    } else {
      for (const [turn, items] of turns) {
        this.post(
          items === "all" ? { type: "turn", turn } : { type: "items", turn: { ...turn, items: [] }, items: [...items] },
        );
      }
    }
    this.post({ type: "state", state: this.state() });
    if (this.focusWhenReady) {
      this.focusWhenReady = false;
      this.post({ type: "focus" });
    }
    const waiting = this.parts.approvals.questions.length;
    this.view.badge = { value: waiting, tooltip: `${waiting} to approve` }; // undefined would leave the last one
  }

  private state(): ShownState {
    const { approvals, modes, server, sessions } = this.parts;
    return {
      problem: server.state.kind === "failed" ? server.state.message : "",
      running: (this.prompts?.count ?? 0) > 0 || sessions.running.length > 0,
      mode: modes.current ?? "",
      questions: approvals.questions.map(({ request: { id, tool, target, reason, rule, diff } }) => ({
        id,
        tool,
        target,
        reason,
        rule,
        diff,
      })),
    };
  }

  private post(message: ToView): void {
    void this.view?.webview.postMessage(message);
  }

  private async receive(message: unknown): Promise<void> {
    try {
      await this.act(fromView(message));
    } catch (error) {
      void this.parts.failures.tell(error);
    }
  }

  private async act(message: FromView): Promise<void> {
    const { approvals, changes, places, sessions } = this.parts;
    switch (message.type) {
      case "ready":
        this.ready = true;
        this.dirty.session = true;
        this.update();
        break;
      case "prompt": {
        const session = sessions.current;
        const prompt = message.text;
        await this.prompts?.run(session === undefined ? { prompt } : { prompt, sessionId: session.id });
        break;
      }
      case "cancel":
        await this.prompts?.cancel();
        break;
      case "answer":
        approvals.answer(message.id, approvalAnswer(message));
        break;
      case "showChange":
        await changes.show(message.id);
        break;
      case "openLink":
        await places.openLink(message.href);
        break;
      case "openFile":
        await places.openFile(message.path, message.line, message.column);
        break;
      case "openChange":
        await places.openChange(message.turnId, message.path);
        break;
      case "undo":
        await commands.executeCommand("agentLsp.undoTurn", { turnId: message.turnId });
        break;
      case "run":
        await commands.executeCommand(message.command);
        break;
    }
  }
}
