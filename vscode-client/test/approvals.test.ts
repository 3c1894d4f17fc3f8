/** Questions that wait, and their notifications. */

import { beforeEach, expect, test, vi } from "vitest";

import { Approvals } from "../src/approvals";
import { ApprovalNotifications } from "../src/notifications";
import type { ApprovalAnswer } from "../src/protocol";
import { change, command } from "./requests";
import { CancellationTokenSource, shown } from "./vscode";

interface Asked {
  readonly source: CancellationTokenSource;
  readonly answer: Promise<ApprovalAnswer | null>;
}

function ask(approvals: Approvals, request = change()): Asked {
  const source = new CancellationTokenSource();
  return { source, answer: approvals.ask(request, source.token) };
}

function notified(): { approvals: Approvals; clock: { now: number }; looked: string[] } {
  const approvals = new Approvals();
  const clock = { now: 0 };
  const looked: string[] = [];
  new ApprovalNotifications(
    approvals,
    (id) => Promise.resolve(looked.push(id)),
    () => clock.now,
  );
  return { approvals, clock, looked };
}

const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

beforeEach(() => {
  shown.messages.length = 0;
  shown.commands.length = 0;
});

test("the first answer wins", async () => {
  const approvals = new Approvals();
  const { answer } = ask(approvals);
  expect(approvals.answer("approval_1", { decision: "allow", scope: "session" })).toBe(true);
  expect(approvals.answer("approval_1", { decision: "deny" })).toBe(false);
  expect(await answer).toEqual({ decision: "allow", scope: "session" });
  expect(approvals.questions).toEqual([]);
});

test("a question that the server withdraws is gone, without an answer", async () => {
  const approvals = new Approvals();
  const changed = vi.fn();
  const { source, answer } = ask(approvals);
  approvals.onDidChange(changed);
  source.cancel();
  expect(await answer).toBeNull();
  expect(approvals.questions).toEqual([]);
  expect(changed).toHaveBeenCalledTimes(1);
});

test("parts are decided one by one, and the last one answers", async () => {
  const approvals = new Approvals();
  const { answer } = ask(approvals);
  approvals.decide("approval_1", 0, false);
  expect(approvals.questions[0]?.decided).toEqual(new Map([[0, false]]));
  approvals.decide("approval_1", 1, true);
  expect(await answer).toEqual({ decision: "allow", hunks: [1] });
});

test("all parts left out is a refusal, and a part that is not there decides nothing", async () => {
  const approvals = new Approvals();
  const { answer } = ask(approvals);
  expect(approvals.decide("approval_1", 2, true)).toBe(false);
  approvals.decide("approval_1", 0, false);
  approvals.decide("approval_1", 1, false);
  expect(await answer).toEqual({ decision: "deny" });
});

test("what was left out stays out, whatever is allowed then", async () => {
  const approvals = new Approvals();
  const { answer } = ask(approvals);
  approvals.decide("approval_1", 0, false);
  approvals.answer("approval_1", { decision: "allow", scope: "always" });
  expect(await answer).toEqual({ decision: "allow", scope: "always", hunks: [1] });
});

test("what the server has decided already counts", async () => {
  const approvals = new Approvals();
  const { answer } = ask(approvals, { ...change(), decided: { "0": false } });
  approvals.decide("approval_1", 1, true);
  expect(await answer).toEqual({ decision: "allow", hunks: [1] });
});

test("a notification has the answers in order, the first one harmless", async () => {
  const { approvals } = notified();
  const { answer } = ask(approvals);
  expect(shown.messages.map(({ text, choices }) => ({ text, choices }))).toEqual([
    {
      text: "Allow edit_file: a.py? Writing asks [approval]",
      choices: ["Show Change", "Allow", "More…", "Deny"],
    },
  ]);
  shown.messages[0]?.answer("Deny");
  expect(await answer).toEqual({ decision: "deny" });
});

test("a command has no rule to remember, and its text makes no link", async () => {
  const { approvals, clock } = notified();
  const { answer } = ask(approvals, command());
  expect(shown.messages[0]?.text).toBe("Allow shell: make [x] (command:y)? Writing asks [approval]");
  expect(shown.messages[0]?.choices).toEqual(["Show Details", "Allow", "More…", "Deny"]);
  clock.now = 400;
  shown.messages[0]?.answer("Allow");
  expect(await answer).toEqual({ decision: "allow" });
});

test("what a notification has no room for is a list", async () => {
  const { approvals } = notified();
  const { answer } = ask(approvals);
  shown.messages[0]?.answer("More…");
  await settled();
  expect(shown.messages[1]?.choices).toEqual([
    "Allow in This Session",
    "Always Allow edit_file(/a.py)",
    "Deny with Feedback…",
  ]);
  shown.messages[1]?.answer("Always Allow edit_file(/a.py)");
  expect(await answer).toEqual({ decision: "allow", scope: "always" });
});

test("a refusal says what to do instead, and one that is left half-way answers nothing", async () => {
  const { approvals } = notified();
  const { answer } = ask(approvals, command());
  const first = ask(approvals);
  shown.messages[0]?.answer("More…");
  await settled();
  shown.messages[1]?.answer("Deny with Feedback…");
  await settled();
  shown.messages[2]?.answer("use git");
  expect(await answer).toEqual({ decision: "deny", feedback: "use git" });
  await settled();
  shown.messages[3]?.answer("More…");
  await settled();
  shown.messages[4]?.answer(undefined);
  await settled();
  expect(approvals.questions).toHaveLength(1);
  approvals.clear();
  expect(await first.answer).toBeNull();
});

test("an Allow within the guard is asked again", async () => {
  const { approvals, clock } = notified();
  const { answer } = ask(approvals);
  clock.now = 399;
  shown.messages[0]?.answer("Allow");
  await settled();
  expect(approvals.questions).toHaveLength(1);
  expect(shown.messages).toHaveLength(2);
  clock.now = 399 + 400;
  shown.messages[1]?.answer("Allow");
  expect(await answer).toEqual({ decision: "allow" });
});

test("a dismissed question keeps waiting, and is not put again", async () => {
  const { approvals } = notified();
  ask(approvals);
  shown.messages[0]?.answer(undefined);
  await settled();
  expect(approvals.questions).toHaveLength(1);
  ask(approvals, command());
  expect(shown.messages.map(({ text }) => text.slice(0, 12))).toEqual(["Allow edit_f", "Allow shell:"]);
});

test("looking at the change answers nothing", async () => {
  const { approvals, looked } = notified();
  ask(approvals);
  shown.messages[0]?.answer("Show Change");
  await settled();
  expect(looked).toEqual(["approval_1"]);
  expect(approvals.questions).toHaveLength(1);
});

test("one question is on screen at a time, and a withdrawn one makes room", async () => {
  const { approvals } = notified();
  const first = ask(approvals);
  const second = ask(approvals, command());
  expect(shown.messages).toHaveLength(1);
  first.source.cancel();
  expect(shown.commands).toEqual([["notifications.hideToasts"]]);
  expect(shown.messages).toHaveLength(2);
  shown.messages[0]?.answer("Allow"); // of the one that is gone
  await settled();
  expect(approvals.questions).toHaveLength(1);
  shown.messages[1]?.answer("Deny");
  expect(await second.answer).toEqual({ decision: "deny" });
});
