/** The editor's documents, read and changed for the agent. */

import { beforeEach, expect, test } from "vitest";

import { diagnostics, readDocument, writeDocument } from "../src/documents";
import { Uri, languages, workspace, type WorkspaceEdit } from "./vscode";

const URI = "file:///work%20space/%C3%BCnit/a.py";
const EDITS = [{ range: { start: { line: 1, character: 0 }, end: { line: 2, character: 0 } }, newText: "2\n" }];

interface Opened {
  readonly edits: WorkspaceEdit[];
  saves: number;
}

/** An open document, and what happens to it. */
function open(
  given: { readonly isDirty?: boolean; readonly applies?: boolean; readonly savable?: boolean } = {},
): Opened {
  const opened: Opened = { edits: [], saves: 0 };
  const document = {
    uri: Uri.parse(URI),
    version: 7,
    isClosed: false,
    isDirty: given.isDirty ?? false,
    getText: () => "one\ntwo\n",
    save: () => {
      opened.saves += 1;
      return Promise.resolve(given.savable ?? true);
    },
  };
  workspace.textDocuments = [document];
  workspace.applyEdit = (edit) => {
    opened.edits.push(edit);
    document.isDirty = true;
    return Promise.resolve(given.applies ?? true);
  };
  return opened;
}

const write = (version = 7): Promise<unknown> => writeDocument({ uri: URI, version, edits: EDITS, save: true });

beforeEach(() => {
  workspace.textDocuments = [];
});

test("an open document is read as the editor has it, another is not", () => {
  expect(readDocument({ uri: URI })).toBeNull();
  open();
  expect(readDocument({ uri: URI })).toEqual({ text: "one\ntwo\n", version: 7 });
});

test("edits are one edit, saved afterwards", async () => {
  const opened = open();
  expect(await write()).toEqual({ applied: true, saved: true });
  expect(opened.edits).toHaveLength(1);
  expect(opened.edits[0]?.replacements).toMatchObject([
    { range: { start: { line: 1 }, end: { line: 2 } }, text: "2\n" },
  ]);
});

test("what the user had not saved is not saved for them", async () => {
  const opened = open({ isDirty: true });
  expect(await write()).toEqual({ applied: true, saved: false });
  expect(opened.saves).toBe(0);
});

test("a file that cannot be saved is told as it is", async () => {
  open({ savable: false });
  expect(await write()).toEqual({ applied: true, saved: false });
});

test.each([
  ["another version", 6, {}],
  ["an editor that does not apply it", 7, { applies: false }],
])("nothing is said to be made for %s", async (_name, version, given) => {
  const opened = open(given);
  expect(await write(version)).toMatchObject({ applied: false });
  expect(opened.saves).toBe(0);
});

test("what others report is told, and what we said ourselves is not", () => {
  open();
  const range = { start: { line: 1, character: 4 }, end: { line: 1, character: 5 } };
  const found = [
    { range, severity: 0, source: "pyright", code: { value: "reportX", target: "" }, message: "x" },
    { range, severity: 1, source: "agent-lsp", message: "ours" },
    { range, severity: 3, code: 17, message: "y" },
  ];
  languages.getDiagnostics = () => found;
  expect(diagnostics({ uri: URI })).toEqual([
    {
      uri: Uri.parse(URI).toString(),
      version: 7,
      diagnostics: [
        { range, severity: 1, source: "pyright", code: "reportX", message: "x" },
        { range, severity: 4, code: "17", message: "y" },
      ],
    },
  ]);
});
