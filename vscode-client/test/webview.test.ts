// @vitest-environment jsdom
/** The agent view's page: text of the model never becomes anything but text, and nothing is allowed by accident. */

import { beforeEach, expect, test, vi } from "vitest";

import type { CallItem, Turn, ValidationItem } from "../src/items";
import type { FromView, ShownQuestion } from "../src/view/messages";
import { argumentsDiff, diffBlock } from "../src/webview/diff";
import { endNode, itemNode } from "../src/webview/items";
import { Markdown } from "../src/webview/markdown";
import { Questions } from "../src/webview/questions";
import { Transcript } from "../src/webview/transcript";

const send = vi.fn<(message: FromView) => void>();
const opened = vi.fn<(href: string) => void>();
const markdown = new Markdown(opened);
const tools = { markdown, send };

function rendered(text: string): HTMLElement {
  const root = document.createElement("div");
  root.append(markdown.render(text));
  return root;
}

function press(root: ParentNode, label: string): void {
  const found = [...root.querySelectorAll("button")].find(({ textContent }) => textContent === label);
  if (found === undefined) {
    throw new Error(`there is no button ${label}`);
  }
  found.click();
}

beforeEach(() => {
  send.mockClear();
  opened.mockClear();
  document.body.replaceChildren();
  vi.stubGlobal("CSS", { escape: (text: string) => text.replace(/["\\]/g, "\\$&") });
});

test("Markdown is shown", () => {
  const root = rendered("# One\n\n- a *b* **c** `d`\n- e\n\n```py\nx < 1\n```\n\n| f | g |\n|---|---|\n| h | i |\n");
  expect(root.querySelector("h1")?.textContent).toBe("One");
  expect([...root.querySelectorAll("li")].map(({ textContent }) => textContent.trim())).toEqual(["a b c d", "e"]);
  expect(root.querySelector("li em")?.textContent).toBe("b");
  expect(root.querySelector("pre code")?.textContent).toBe("x < 1\n");
  expect([...root.querySelectorAll("td")].map(({ textContent }) => textContent)).toEqual(["h", "i"]);
});

test.each([
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "a <b onclick=alert(1)>b</b>",
  "![x](https://elsewhere/y.png)",
  "<svg><script>alert(1)</script></svg>\n\n<iframe src=javascript:alert(1)></iframe>",
  "```<img onerror=alert(1)>\n<script>\n```",
  "[x](javascript:alert(1)) [y](command:workbench.action.quit) [z](data:text/html,<script>)",
  "[x](https://a.b 'onmouseover=alert(1)')",
  "| <script> |\n|---|\n| <img src=x> |",
])("no element and no attribute comes from the text: %s", (text) => {
  const root = rendered(text);
  const allowed = new Set([
    "P",
    "EM",
    "STRONG",
    "S",
    "CODE",
    "PRE",
    "BUTTON",
    "SPAN",
    "TABLE",
    "THEAD",
    "TBODY",
    "TR",
    "TH",
    "TD",
  ]);
  for (const node of root.querySelectorAll("*")) {
    expect(allowed).toContain(node.tagName);
    const names = node
      .getAttributeNames()
      .filter((name) => !["type", "class", "role", "title", "tabindex"].includes(name));
    expect(names).toEqual([]);
  }
});

test("a link opens nothing itself: it tells where it leads", () => {
  const root = rendered("see [the page](https://example.org/a_b?c=1)");
  press(root, "the page");
  expect(root.querySelector("a")).toBeNull();
  expect(opened).toHaveBeenCalledWith("https://example.org/a_b?c=1");
});

const CALL: CallItem = {
  kind: "call",
  id: "s1/1",
  agent: null,
  callId: "c",
  tool: "edit_file",
  target: "",
  state: "ok",
  arguments: { path: "a.py", edits: [{ old: "one\n", new: "<b>1</b>\n" }] },
  output: "",
  result: "Edited <i>a.py</i>",
  changes: ["a.py"],
};

test("a call is folded, with its change and its result", () => {
  const node = itemNode(CALL, tools);
  expect(node.querySelector("details")?.hasAttribute("open")).toBe(false);
  expect(node.querySelector("summary")?.textContent).toBe("edit_file a.py ✓");
  expect([...node.querySelectorAll(".line")].map(({ className, textContent }) => [className, textContent])).toEqual([
    ["line head", "@@\n"],
    ["line removed", "-one\n"],
    ["line added", "+<b>1</b>\n"],
  ]);
  expect(node.querySelector(".result")?.textContent).toBe("Edited <i>a.py</i>");
});

test("the head of a diff is no change, and a long diff says what is cut", () => {
  const node = diffBlock(`--- a/x\n+++ b/x\n@@ -1 +1 @@\n--- y\n${"+z\n".repeat(500)}`);
  expect([...node.querySelectorAll(".line")].slice(0, 5).map(({ className }) => className)).toEqual([
    "line head",
    "line head",
    "line head",
    "line removed",
    "line added",
  ]);
  expect(node.textContent).toContain("[104 more lines]");
  expect(argumentsDiff({ command: "make" })).toBeUndefined();
});

test("findings lead to their places", () => {
  const item: ValidationItem = {
    kind: "validation",
    id: "s1/2",
    agent: null,
    attempt: 2,
    limit: 3,
    validators: [
      { name: "pytest", command: "pytest -q", status: "failed", duration: 1.25, output: "1 failed", log: null },
    ],
    report: {
      status: "red",
      failing: ["pytest"],
      already_failing: [],
      findings: [
        {
          ...{ path: "test_a.py", line: 3, column: 0, message: "assert 1 == 2", code: "AssertionError" },
          ...{ tool: "pytest", severity: "error", already_failing: false },
        },
      ],
      notes: [],
    },
  };
  const node = itemNode(item, tools);
  expect(node.querySelector("h3")?.textContent).toBe("✗ Validation failed (round 2 of 3)");
  press(node, "test_a.py:3");
  expect(send).toHaveBeenCalledWith({ type: "openFile", path: "test_a.py", line: 3, column: 0 });
});

const TURN: Turn = {
  id: "t1",
  prompt: "Fix <it>",
  items: [CALL],
  state: "completed",
  error: null,
  changes: ["a.py"],
  tokens: 0,
};

test("a turn that is over lists its files, and can be undone", () => {
  const node = endNode(TURN, tools);
  press(node, "a.py");
  press(node, "Undo");
  expect(send.mock.calls).toEqual([
    [{ type: "openChange", path: "a.py", turnId: "t1" }],
    [{ type: "undo", turnId: "t1" }],
  ]);
});

test("what changes is replaced, and the rest stays as the human left it", () => {
  const root = document.body.appendChild(document.createElement("main"));
  const transcript = new Transcript(root, tools);
  transcript.show({ id: "s1", title: "", history: "**before**", turns: [{ ...TURN, state: "running" }] });
  const details = root.querySelector("details");
  details?.setAttribute("open", "");
  transcript.showItems(TURN, [{ ...CALL, result: "again" }]);
  transcript.showItems(TURN, [{ kind: "text", id: "s1/3", agent: null, text: "Done", done: true }]);
  expect(root.querySelector("details")?.hasAttribute("open")).toBe(true);
  expect(root.querySelector(".result")?.textContent).toBe("again");
  expect(root.querySelector("strong")?.textContent).toBe("before");
  expect(root.textContent).toContain("Fix <it>");
  expect(root.querySelector("article[data-turn] > .end")?.previousElementSibling?.textContent).toBe("Done");
});

const QUESTION: ShownQuestion = {
  id: "q1",
  tool: "shell",
  target: "rm <b>x</b>",
  reason: "Commands ask",
  rule: "shell(rm *)",
  diff: null,
};

function asked(): { questions: Questions; root: HTMLElement; said: string[] } {
  const root = document.body.appendChild(document.createElement("section"));
  const said: string[] = [];
  return { root, said, questions: new Questions(root, send, (text) => said.push(text)) };
}

test("an Allow works only after the question has been there for a while, and after nothing else came", () => {
  const clock = vi.spyOn(performance, "now").mockReturnValue(0);
  const { questions, root, said } = asked();
  questions.show([QUESTION]);
  clock.mockReturnValue(399);
  press(root, "Allow");
  questions.show([QUESTION, { ...QUESTION, id: "q2" }]);
  clock.mockReturnValue(700);
  press(root, "Always Allow shell(rm *)");
  expect(send).not.toHaveBeenCalled();
  clock.mockReturnValue(799);
  press(root, "Allow in This Session");
  expect(send).toHaveBeenCalledWith({ type: "answer", id: "q1", decision: "allow", scope: "session" });
  expect(said[0]).toBe("The agent asks: shell rm <b>x</b>. 1 to approve.");
  expect(root.querySelector("b")).toBeNull();
  clock.mockRestore();
});

test("a denial takes along what was written, and nothing takes the focus", () => {
  const { questions, root } = asked();
  const prompt = document.body.appendChild(document.createElement("textarea"));
  prompt.focus();
  questions.show([QUESTION]);
  expect(document.activeElement).toBe(prompt);
  const feedback = root.querySelector("input");
  if (feedback !== null) {
    feedback.value = " use git ";
  }
  press(root, "Deny");
  expect(send).toHaveBeenCalledWith({ type: "answer", id: "q1", decision: "deny", feedback: "use git" });
});

test("a question that is gone leaves, and the others stay as they were", () => {
  const { questions, root } = asked();
  questions.show([QUESTION, { ...QUESTION, id: "q2" }]);
  const [, feedback] = root.querySelectorAll("input");
  feedback?.focus();
  questions.show([{ ...QUESTION, id: "q2" }]);
  expect(root.querySelectorAll("article")).toHaveLength(1);
  expect(document.activeElement).toBe(feedback);
});
