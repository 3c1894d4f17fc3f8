/** The editor's documents for the agent: read with unsaved text, changed as one undo step, and what is wrong in them. */

import {
  Range,
  Uri,
  WorkspaceEdit,
  languages,
  workspace,
  type Diagnostic as EditorDiagnostic,
  type TextDocument,
} from "vscode";

import type {
  Diagnostic,
  DiagnosticsParams,
  DiagnosticsResult,
  ReadDocumentParams,
  ReadDocumentResult,
  WriteDocumentParams,
  WriteDocumentResult,
} from "./protocol";

const OURS = "agent-lsp";

/** `agent/readDocument`: an open document; null for one that is not open. */
export function readDocument({ uri }: ReadDocumentParams): ReadDocumentResult {
  const document = find(uri);
  return document === undefined ? null : { text: document.getText(), version: document.version };
}

/** `agent/writeDocument`: the edits as one undo step; then saved, unless the user had unsaved text in it before. */
export async function writeDocument(params: WriteDocumentParams): Promise<WriteDocumentResult> {
  const document = find(params.uri);
  if (document === undefined) {
    return { applied: false, reason: "the document is not open" };
  }
  if (document.version !== params.version) {
    return { applied: false, reason: "the document was edited meanwhile" };
  }
  const unsavedBefore = document.isDirty;
  const edit = new WorkspaceEdit();
  for (const { range, newText } of params.edits) {
    const place = new Range(range.start.line, range.start.character, range.end.line, range.end.character);
    edit.replace(document.uri, place, newText);
  }
  if (!(await workspace.applyEdit(edit))) {
    return { applied: false, reason: "the editor did not apply the edit" };
  }
  const saved = params.save && !unsavedBefore && (await document.save());
  return { applied: true, saved };
}

/** `agent/diagnostics`: what others report, of one document or of all. */
export function diagnostics({ uri }: DiagnosticsParams): DiagnosticsResult {
  const all =
    uri === undefined
      ? languages.getDiagnostics()
      : [[Uri.parse(uri), languages.getDiagnostics(Uri.parse(uri))] as const];
  return all.map(([place, found]) => ({
    uri: place.toString(),
    version: find(place.toString())?.version ?? null,
    diagnostics: found.filter((each) => each.source !== OURS).map(wire),
  }));
}

function find(uri: string): TextDocument | undefined {
  const wanted = Uri.parse(uri).toString();
  return workspace.textDocuments.find((document) => !document.isClosed && document.uri.toString() === wanted);
}

function wire({ range, severity, source, code, message }: EditorDiagnostic): Diagnostic {
  const plainCode = typeof code === "object" ? code.value : code;
  return {
    range: {
      start: { line: range.start.line, character: range.start.character },
      end: { line: range.end.line, character: range.end.character },
    },
    severity: severity + 1, // the protocol counts from 1
    message,
    ...(source === undefined ? {} : { source }),
    ...(plainCode === undefined ? {} : { code: String(plainCode) }),
  };
}
