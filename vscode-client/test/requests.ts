/** Questions as the server asks them. */

import type { ApprovalRequest } from "../src/protocol";

/** A change of `a.py` with two parts. */
export function change(id = "approval_1"): ApprovalRequest {
  return {
    id,
    tool: "edit_file",
    target: "a.py",
    reason: "Writing asks",
    rule: "edit_file(/a.py)",
    uri: "file:///work%20space/%C3%BCnit/a.py",
    diff: "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-one\n+1\n",
    hunks: [
      { before: [0, 4], after: [0, 4], replaced: [1, 2] },
      { before: [10, 14], after: [10, 13], replaced: [12, 13] },
    ],
    decided: {},
    before: "one\n",
    after: "1\n",
  };
}

export function command(id = "approval_2"): ApprovalRequest {
  return {
    ...change(id),
    ...{ tool: "shell", target: "make [x](command:y)", rule: null, uri: null, diff: null },
    ...{ hunks: [], before: null, after: null },
  };
}
