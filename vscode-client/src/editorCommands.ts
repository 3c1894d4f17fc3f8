/** Prompts about what is in the active editor. */

import { languages, window, type Diagnostic, type Range as EditorRange, type TextEditor } from "vscode";

import type { Prompts } from "./prompts";
import type { ContextItem, Range } from "./protocol";

const OURS = "agent-lsp";
const FOUND_BY_VALIDATORS = "validation";
const EXPLAIN = "Explain this code, and name what is wrong or risky in it.";
const MOST_LISTED = 50;

export async function runPrompt(prompts: Prompts, given?: string): Promise<void> {
  const prompt = given ?? (await ask("What shall the agent do?"));
  if (prompt !== undefined) {
    await prompts.run({ prompt });
  }
}

export async function runOnSelection(prompts: Prompts): Promise<void> {
  const editor = await activeEditor();
  const context = editor === undefined ? undefined : selection(editor);
  const prompt = context === undefined ? undefined : await ask("What shall the agent do about the selection?");
  if (prompt !== undefined && context !== undefined) {
    await prompts.run({ prompt, context: [context] });
  }
}

export async function explainSelection(prompts: Prompts): Promise<void> {
  const editor = await activeEditor();
  if (editor !== undefined) {
    await prompts.run({ prompt: EXPLAIN, context: [selection(editor)], mode: "plan" });
  }
}

export async function fixDiagnostics(prompts: Prompts): Promise<void> {
  const editor = await activeEditor();
  if (editor === undefined) {
    return;
  }
  const { uri } = editor.document;
  const problems = languages
    .getDiagnostics(uri)
    .filter(isFixable)
    .sort((a, b) => a.range.start.compareTo(b.range.start));
  if (problems.length === 0) {
    void window.showInformationMessage("Agent: no problem is known in this file.");
    return;
  }
  const listed = problems
    .slice(0, MOST_LISTED)
    .map((each) => `- line ${each.range.start.line + 1}: ${described(each)}`);
  const prompt = ["Fix these problems and nothing else:", ...listed].join("\n");
  await prompts.run({ prompt, context: [{ uri: uri.toString() }] });
}

async function ask(question: string): Promise<string | undefined> {
  const prompt = await window.showInputBox({ title: "Agent", prompt: question, ignoreFocusOut: true });
  return prompt === undefined || prompt.trim() === "" ? undefined : prompt;
}

async function activeEditor(): Promise<TextEditor | undefined> {
  const editor = window.activeTextEditor;
  if (editor?.document.uri.scheme === "file") {
    return editor;
  }
  await window.showInformationMessage("Agent: open a file of the workspace first.");
  return undefined;
}

/** The selection; without one the whole file. */
function selection({ document, selection }: TextEditor): ContextItem {
  const uri = document.uri.toString();
  return selection.isEmpty ? { uri } : { uri, range: plainRange(selection) };
}

function plainRange({ start, end }: EditorRange): Range {
  return {
    start: { line: start.line, character: start.character },
    end: { line: end.line, character: end.character },
  };
}

/** Whether the agent may be asked to fix it: what waits for a human's answer is not for it. */
function isFixable({ source, code }: Diagnostic): boolean {
  return source !== OURS || code === FOUND_BY_VALIDATORS;
}

function described({ message, source, code }: Diagnostic): string {
  const shown = typeof code === "object" ? code.value : code;
  const who = source === OURS ? [] : [source, shown].filter((part) => part !== undefined);
  return who.length === 0 ? message : `${message} (${who.join(" ")})`;
}
