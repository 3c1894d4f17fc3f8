/** Sessions: begun, gone on with, read, and taken back. */

import { window, type QuickPickItem } from "vscode";

import type { Parts } from "./parts";
import type { SessionEntry, UndoResult } from "./protocol";
import { plain, shorten } from "./text";

export async function newSession({ agent, sessions, view }: Parts): Promise<void> {
  const { sessionId } = await agent.newSession();
  sessions.show(sessionId);
  await view.focus();
}

export async function continueSession(parts: Parts, id?: string): Promise<void> {
  const chosen = id ?? (await pickSession(await parts.agent.sessions()))?.sessionId;
  if (chosen === undefined) {
    return;
  }
  const { sessionId, interrupted } = await parts.agent.resume(chosen);
  const { markdown } = await parts.agent.transcript(sessionId);
  parts.sessions.show(sessionId, markdown);
  await parts.view.focus();
  if (interrupted) {
    void window.showInformationMessage(
      "Agent: this session was interrupted in the middle of a turn. A prompt goes on from there.",
    );
  }
}

async function pickSession(entries: readonly SessionEntry[]): Promise<SessionEntry | undefined> {
  if (entries.length === 0) {
    void window.showInformationMessage("Agent: this workspace has no session yet.");
    return undefined;
  }
  const items = entries.map((entry): QuickPickItem & { readonly entry: SessionEntry } => ({
    entry,
    label: plain(entry.title) || "New session",
    description: sessionState(entry),
    detail: `${entry.turns} ${entry.turns === 1 ? "turn" : "turns"}${entry.updated === null ? "" : `, ${new Date(entry.updated * 1000).toLocaleString()}`}`,
  }));
  const options = { title: "Agent: Continue Session", placeHolder: "Which session?", matchOnDetail: true };
  return (await window.showQuickPick(items, options))?.entry;
}

export function sessionState(entry: SessionEntry): string {
  if (entry.elsewhere) {
    return "open in another window";
  }
  return entry.running ? "running" : entry.current ? "current" : "";
}

export async function openTranscript({ agent, sessions, texts }: Parts): Promise<void> {
  const { current } = sessions;
  const { markdown } = await agent.transcript(current?.id);
  if (markdown === "") {
    void window.showInformationMessage("Agent: there is nothing in this session yet.");
    return;
  }
  await texts.preview(`${shorten(current?.title ?? "Session", 40).replaceAll("/", " ")}.md`, markdown);
}

/** Take back what a turn did to files: the last one, or the one that a list names. */
export async function undoTurn({ agent, sessions, texts }: Parts, turn?: unknown): Promise<void> {
  const session = sessions.current;
  const turnId = typeof turn === "object" && turn !== null && "turnId" in turn ? String(turn.turnId) : undefined;
  const turns = session?.turns ?? [];
  const meant =
    turnId === undefined ? turns.findLast(({ changes }) => changes.length > 0) : turns.find(({ id }) => id === turnId);
  const about = meant === undefined ? "the last turn" : `“${shorten(meant.prompt, 60)}”`;
  const detail = meant === undefined ? "" : meant.changes.join("\n");
  const question = `Undo what ${about} changed in files?`;
  if ((await window.showWarningMessage(question, { modal: true, detail }, "Undo")) !== "Undo") {
    return;
  }
  const named = session === undefined ? {} : { sessionId: session.id };
  const result = await agent.undo(meant === undefined ? named : { ...named, turnId: meant.id });
  const left = result.refused.length + result.notCovered.length;
  const message = `Agent: ${count(result.restored.length, "file")} restored${left === 0 ? "" : `, ${left} left as they are`}.`;
  if (left === 0) {
    void window.showInformationMessage(message);
  } else if ((await window.showWarningMessage(message, "Show Details")) !== undefined) {
    await texts.show("Undo.md", undoDetails(result));
  }
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

function undoDetails({ restored, refused, notCovered }: UndoResult): string {
  return [
    "# Undo",
    "",
    ...restored.map(({ path, what, unsaved }) => `- restored: ${path} (${what}${unsaved ? ", not saved" : ""})`),
    ...refused.map(({ path, reason }) => `- left: ${path}: ${reason}`),
    ...notCovered.map((line) => `- not covered: ${line}`),
    ...refused.flatMap(({ path, diff }) =>
      diff === null || diff === "" ? [] : ["", `## ${path}`, "", "```diff", diff, "```"],
    ),
    "",
  ].join("\n");
}
