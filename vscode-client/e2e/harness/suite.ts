// One model server, one VS Code, one browser for all tests; a folder and a window for each.

import { mkdtempSync, rmSync } from "node:fs";
import path from "node:path";
import { after, test } from "node:test";

import { CodeServer, type Json, type Options } from "./code-server.ts";
import { Model } from "./model.ts";
import { RUN, VSIX } from "./places.ts";
import { type Files, makeProject, type Project } from "./project.ts";
import { launchBrowser, makeHome, modelEnvironment, USER } from "./user.ts";
import { eventually, START_LIMIT } from "./wait.ts";
import { Window } from "./window.ts";

const home = makeHome();
const model = await Model.start();
const server = await CodeServer.start({
  home,
  extensions: [VSIX],
  settings: USER,
  environment: modelEnvironment(model),
});
const browser = await launchBrowser();

after(async () => {
  await browser.close();
  await server.stop();
  model.stop();
  rmSync(home, { recursive: true, force: true });
});

export interface Scenario {
  readonly window: Window;
  readonly project: Project;
  readonly model: Model;
  readonly server: CodeServer;
}

export interface Given {
  readonly files?: Files;
  /** The folder's name. */
  readonly folder?: string;
  /** The user's settings of VS Code, beside those of all tests. */
  readonly settings?: Json;
  /** The extension will say that something failed; else that ends the test. */
  readonly fails?: boolean;
  /** A VS Code of its own, for a user who has nothing but this. */
  readonly own?: Pick<Options, "asksForTrust" | "environment" | "settings">;
}

/** A test with a folder and a window of its own. It also fails if the model was asked more or less than was scripted. */
export function scenario(name: string, given: Given, body: (scenario: Scenario) => Promise<void>): void {
  void test(name, { timeout: 5 * START_LIMIT }, async () => {
    await model.forget();
    const project = makeProject(mkdtempSync(path.join(home, "test-")), given.folder ?? "work", given.files ?? {});
    await using(given, project, async (server) => {
      const window = await Window.open(browser, server, project.root);
      try {
        await window.ready();
        await Promise.race([
          body({ window, project, model, server }),
          ...(given.fails === true ? [] : [window.failure()]),
        ]);
        await eventually("the model is asked as often as was scripted", () => model.consumed().then(() => true));
      } catch (error) {
        await keep(name, window);
        throw error;
      } finally {
        await window.close();
      }
    });
  });
}

/** Use the VS Code of all tests, or one that is started for this. */
async function using(given: Given, project: Project, use: (server: CodeServer) => Promise<void>): Promise<void> {
  if (given.own === undefined) {
    server.set({ ...USER, ...given.settings });
    await use(server);
    return;
  }
  const environment = { ...modelEnvironment(model), ...given.own.environment };
  const own = await CodeServer.start({
    extensions: [VSIX],
    ...given.own,
    home: mkdtempSync(path.join(path.dirname(project.root), "home-")),
    environment,
  });
  try {
    await use(own);
  } finally {
    await own.stop();
  }
}

/** Keep what helps to understand a failure. */
export async function keep(name: string, window: Window): Promise<void> {
  await window.picture(name);
  try {
    await window.command("Agent: Show Log");
    await window.page.locator(".output-view-container, .editor-instance[aria-label*=Output]").first().waitFor();
    await window.picture(`${name}, log`);
  } catch {
    // the window is in no state to show it
  }
  console.error(`kept in ${RUN}`);
}
