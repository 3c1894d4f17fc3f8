/** Where links of the model may lead. */

import { expect, test } from "vitest";

import { fileInWorkspace, readLink } from "../src/view/places";

test.each([
  ["https://example.org/a?b#c", { kind: "web", href: "https://example.org/a?b#c" }],
  ["src/a%20b.py:12:3", { kind: "file", name: "src/a b.py", line: 12 }],
  ["src/a.py#L7", { kind: "file", name: "src/a.py", line: 7 }],
  ["file:///work/a.py", { kind: "file", name: "/work/a.py", line: 1 }],
  ["C:\\work\\a.py:2", { kind: "file", name: "C:\\work\\a.py", line: 2 }],
])("%s is opened", (href, link) => expect(readLink(href)).toEqual(link));

test.each([
  "",
  "command:workbench.action.quit",
  "javascript:alert(1)",
  "vscode://x/y",
  "data:text/html,x",
  "//host/share",
  "file://host/share",
  "COMMAND:x",
  "%63ommand:x",
])("%s is not", (href) => expect(readLink(href)).toBeUndefined());

test("files are those of the workspace", () => {
  expect(fileInWorkspace("src/a.py")?.path).toBe("/work space/ünit/src/a.py");
  expect(fileInWorkspace("/work space/ünit/..a.py")?.path).toBe("/work space/ünit/..a.py");
  expect(["../x", "/etc/passwd", "src/../../x", ""].map((name) => fileInWorkspace(name))).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});
