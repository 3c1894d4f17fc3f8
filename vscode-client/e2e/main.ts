// All end-to-end tests, in one process, so that they share one VS Code and one browser.

import "./harness/suite.ts";

import "./palette.test.ts";
