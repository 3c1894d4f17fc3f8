// All end-to-end tests, in one process, so that they share one VS Code and one browser.

import "./harness/suite.ts";

import "./palette.test.ts";
import "./documents.test.ts";
import "./keyboard.test.ts";
import "./review.test.ts";
import "./view.test.ts";
import "./hooks.test.ts";
import "./lifecycle.test.ts";
import "./trust.test.ts";
import "./install.test.ts";

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(1));
