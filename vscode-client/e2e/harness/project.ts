// A small project with a bug, which the model of the tests mends or spoils.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

import type { Call } from "./model.ts";
import { PYTHON } from "./places.ts";
import { eventually } from "./wait.ts";

export type Files = Readonly<Record<string, string>>;

export const WRONG = "def double(number):\n    return number + 2\n";
export const RIGHT = "def double(number):\n    return number * 2\n";

/** A second place in the source, too far from the first to be shown with it. */
export const LIMIT_LINE = `${"\n".repeat(10)}LIMIT = 1\n`;
export const RAISED = LIMIT_LINE.replace("1", "9");

const TEST = "from doubling import double\n\n\ndef test_double_of_three():\n    assert double(3) == 6\n";
const PYTEST = {
  name: "pytest",
  command: [PYTHON, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "--junitxml={report}"],
  kind: "test",
  tool: "pytest",
};

/** A test that the bug fails, and settings that run it. */
export const WITH_TEST: Files = {
  "test_double.py": TEST,
  ".agent-lsp/settings.json": JSON.stringify({ validation: { validators: [PYTEST] } }, undefined, 2),
};

export class Project {
  constructor(readonly root: string) {}

  path(name: string): string {
    return path.join(this.root, name);
  }

  read(name: string): string {
    return readFileSync(this.path(name), "utf8");
  }

  /** Wait until a file on disk holds exactly this text. */
  async becomes(name: string, text: string): Promise<void> {
    await eventually(`${name} on disk is ${JSON.stringify(text)}`, () => {
      const now = this.read(name);
      if (now !== text) throw new Error(`it is ${JSON.stringify(now)}`);
      return true;
    });
  }
}

export function makeProject(parent: string, name: string, files: Files): Project {
  const root = path.join(parent, name);
  for (const [file, text] of Object.entries({
    "doubling.py": WRONG,
    ".git/HEAD": "ref: refs/heads/main\n",
    ...files,
  })) {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    writeFileSync(path.join(root, file), text);
  }
  return new Project(root);
}

/** The call that replaces texts in the source. */
export function edit(...replacements: readonly (readonly [string, string])[]): Call {
  const edits = replacements.map(([old, new_]) => ({ old, new: new_ }));
  return { name: "edit_file", arguments: { path: "doubling.py", edits } };
}

export const FIX = edit(["number + 2", "number * 2"]);
export const SPOIL = edit(["number * 2", "number ** 2"]);
export const FIX_AND_RAISE = edit(["number + 2", "number * 2"], ["LIMIT = 1", "LIMIT = 9"]);
