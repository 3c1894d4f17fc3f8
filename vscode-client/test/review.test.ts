/** Answers where a change is looked at. */

import { beforeEach, expect, test } from "vitest";

import { Approvals } from "../src/approvals";
import { Changes, changeUri, details, questionAt, readChangeUri } from "../src/changes";
import { Review, firstChangedLine } from "../src/review";
import type { ApprovalRequest } from "../src/protocol";
import { change, command } from "./requests";
import { CancellationTokenSource, TabInputTextDiff, Uri, shown, window } from "./vscode";

interface Reviewing {
  readonly approvals: Approvals;
  readonly changes: Changes;
  readonly review: Review;
  readonly clock: { now: number };
}

function reviewing(): Reviewing {
  const approvals = new Approvals();
  const clock = { now: 0 };
  const changes = new Changes(approvals, () => clock.now);
  return { approvals, changes, review: new Review(approvals, changes), clock };
}

const ask = (approvals: Approvals, request = change()): Promise<unknown> =>
  approvals.ask(request, new CancellationTokenSource().token);

const document = (request = change(), side: "before" | "after" | "details" = "after"): never =>
  ({ uri: changeUri(request, side), lineCount: 13 }) as never;

/** What VS Code says of a tab with a change. */
function diffTab(request: ApprovalRequest): unknown {
  const side = (name: "before" | "after"): Uri => Uri.parse(changeUri(request, name).toString());
  return new TabInputTextDiff(side("before"), side("after"));
}

beforeEach(() => {
  shown.commands.length = 0;
  window.tabGroups.all = [];
});

test("the documents of a change keep the file's name, for its colours, and know their question", () => {
  const uri = changeUri(change(), "after");
  expect(uri.path).toBe("/work space/ünit/a.py");
  expect(readChangeUri(uri)).toEqual({ id: "approval_1", side: "after" });
  expect(questionAt(uri)).toBe("approval_1");
});

test("both sides are shown exactly, as VS Code's own diff", async () => {
  const { approvals, changes } = reviewing();
  void ask(approvals);
  expect(await changes.show("approval_1")).toBe(true);
  const [call] = shown.commands;
  expect(call?.slice(0, 1)).toEqual(["vscode.diff"]);
  expect(call?.[3]).toBe("a.py (Agent: now ↔ proposed)");
  expect(
    ["before", "after"].map((side) => changes.provideTextDocumentContent(changeUri(change(), side as "after"))),
  ).toEqual(["one\n", "1\n"]);
  expect(await changes.show("another")).toBe(false);
});

test("a command is shown whole", () => {
  expect(details(command())).toContain("make [x](command:y)");
});

test("the tabs of an answered question are closed, and no others", () => {
  const { approvals } = reviewing();
  void ask(approvals);
  void ask(approvals, change("approval_2"));
  const tabs = [change(), change("approval_2")].map((request) => ({
    input: diffTab(request),
  }));
  window.tabGroups.all = [{ tabs: [...tabs, { input: undefined }] }];
  const closed: unknown[] = [];
  window.tabGroups.close = (...gone: readonly unknown[]): Promise<boolean> => Promise.resolve(closed.push(gone[0]) > 0);
  approvals.answer("approval_1", { decision: "deny" });
  expect(closed).toEqual([[tabs[0]]]);
});

test("each part has its own lenses, at the line where it begins to differ", () => {
  const { approvals, review } = reviewing();
  void ask(approvals);
  approvals.decide("approval_1", 0, true);
  const lenses = review.provideCodeLenses(document());
  expect(lenses.map(({ range, command }) => [range.start.line, command?.title])).toEqual([
    [0, "$(check) Accept"],
    [0, "$(close) Reject"],
    [0, "$(comment) Reject with Feedback…"],
    [1, "$(pass-filled) Part 1 of 2 Accepted"],
    [1, "$(close) Reject Part 1 of 2"],
    [12, "$(check) Accept Part 2 of 2"],
    [12, "$(close) Reject Part 2 of 2"],
  ]);
  expect(change().hunks.map(firstChangedLine)).toEqual([1, 12]);
  expect(review.provideCodeLenses(document(change(), "before"))).toEqual([]);
  expect(review.provideCodeLenses(document(change("gone")))).toEqual([]);
});

test("an Accept right after the change came on screen is not taken", async () => {
  const { approvals, changes, review, clock } = reviewing();
  void ask(approvals);
  await changes.show("approval_1");
  clock.now = 399;
  await review.accept("approval_1");
  expect(approvals.questions).toHaveLength(1);
  clock.now = 400;
  await review.accept("approval_1");
  expect(approvals.questions).toHaveLength(0);
});

test("an answer goes on to the next question", async () => {
  const { approvals, review } = reviewing();
  const first = ask(approvals);
  void ask(approvals, change("approval_2"));
  await review.reject("approval_1");
  expect(await first).toEqual({ decision: "deny" });
  expect(String(shown.commands.at(-1)?.[2])).toContain("approval_2");
});

test("the part at the cursor is decided", async () => {
  const { approvals, review } = reviewing();
  const answer = ask(approvals);
  window.activeTextEditor = { document: document(), selection: { active: { line: 12 } } };
  await review.decideHere(false);
  expect(approvals.find("approval_1")?.decided).toEqual(new Map([[1, false]]));
  window.activeTextEditor = { document: document(), selection: { active: { line: 6 } } };
  await review.decideHere(true);
  expect(approvals.find("approval_1")?.decided.size).toBe(1);
  await review.decide("approval_1", 0, true);
  expect(await answer).toEqual({ decision: "allow", hunks: [0] });
  window.activeTextEditor = undefined;
});
