// The user of tests and pictures, and the browser before them.

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

import { type Browser, chromium } from "playwright-core";

import type { Json } from "./code-server.ts";
import type { Model } from "./model.ts";
import { CHROMIUM, PYTHON, RUN } from "./places.ts";
import { START_LIMIT } from "./wait.ts";

const CHROMIUM_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"];
CHROMIUM_FLAGS.push("--disable-background-networking", "--disable-component-update", "--disable-sync");

export const launchBrowser = (): Promise<Browser> =>
  chromium.launch({ executablePath: CHROMIUM, args: CHROMIUM_FLAGS, timeout: START_LIMIT });

export const makeHome = (): string => mkdtempSync(path.join(tmpdir(), "agent-lsp-e2e-"));

/** What the server is told by its environment about the model. */
export const modelEnvironment = (model: Model): Record<string, string> => ({
  OPENAI_BASE_URL: model.baseUrl,
  OPENAI_API_KEY: "sk-planted",
  AGENT_LSP_MODEL: "scripted",
});

const SERVER_LOG = path.join(RUN, "server.log");

/** The user of the tests: the server of this clone, with a log for failures. */
export const USER: Json = {
  "agentLsp.server.command": [path.join(path.dirname(PYTHON), "agent-lsp"), "serve", "--log-file", SERVER_LOG],
};
