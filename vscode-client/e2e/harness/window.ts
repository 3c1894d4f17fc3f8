// A VS Code window in the browser, driven as a person drives it. An order is given once and never again: a second try
// after a slow first one runs it twice. What shows that it worked is the disk and the model's requests.

import { mkdirSync } from "node:fs";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";

import type { Browser, BrowserContext, FrameLocator, Locator, Page } from "playwright-core";

import type { CodeServer } from "./code-server.ts";
import { RUN } from "./places.ts";
import { eventually, LIMIT, START_LIMIT } from "./wait.ts";

/** Milliseconds from a question within which it cannot be allowed, and some more. */
export const GUARD = 500;
const SIZE = { width: 1280, height: 800 };

export class Window {
  private constructor(
    private readonly context: BrowserContext,
    readonly page: Page,
    private readonly server: CodeServer,
  ) {}

  /** Open a folder and wait for the workbench. A window of its own: no tab, no choice of another test is in it. */
  static async open(browser: Browser, server: CodeServer, folder: string, size = SIZE, scale = 1): Promise<Window> {
    const context = await browser.newContext({ viewport: size, deviceScaleFactor: scale });
    context.setDefaultTimeout(LIMIT);
    const window = new Window(context, await context.newPage(), server);
    await window.page.goto(server.folderUrl(folder), { timeout: START_LIMIT });
    await window.page.locator(".monaco-workbench .statusbar").waitFor({ timeout: START_LIMIT });
    return window;
  }

  /** Close the window and wait until the language server that it started has ended. */
  async close(): Promise<void> {
    const agents = this.server.agents();
    if (!this.page.isClosed()) await this.leave();
    await this.context.close();
    await eventually(
      "the window's language server ends",
      () => !this.server.agents().some((pid) => agents.includes(pid)),
    );
  }

  /** Leave the workbench the way a closed tab does. */
  async leave(): Promise<void> {
    this.page.once("dialog", (dialog) => void dialog.accept());
    await this.page.goto("about:blank");
  }

  async reload(): Promise<void> {
    this.page.once("dialog", (dialog) => void dialog.accept());
    await this.page.reload({ timeout: START_LIMIT });
    await this.page.locator(".monaco-workbench .statusbar").waitFor({ timeout: START_LIMIT });
  }

  /** Keep a picture of what can be seen. */
  async picture(name: string): Promise<void> {
    mkdirSync(RUN, { recursive: true });
    await this.page.screenshot({ path: path.join(RUN, `${name.replaceAll(/[^\p{L}\p{N}]+/gu, "-")}.png`) });
  }

  /** Two keys, one after the other. */
  async chord(first: string, second: string): Promise<void> {
    await this.press(first);
    await this.press(second);
  }

  /** Let the time pass in which an answer that allows counts as given by mistake. */
  async guard(): Promise<void> {
    await pause(GUARD);
  }

  /** Wait until nothing moves but what turns for ever. */
  async settle(): Promise<void> {
    await this.page.evaluate(async () => {
      const ending = document.getAnimations().filter(({ effect }) => effect?.getTiming().iterations !== Infinity);
      await Promise.allSettled(ending.map(({ finished }) => finished));
    });
  }

  async press(keys: string): Promise<void> {
    await this.page.keyboard.press(keys);
  }

  /** Wait until the extension runs. */
  async ready(): Promise<void> {
    await this.page
      .locator('.statusbar-item[id="agent-lsp.agent-lsp.agentLsp.agent"]')
      .waitFor({ timeout: START_LIMIT });
  }

  /** Run a prompt from the palette. */
  async prompt(text: string): Promise<void> {
    await this.command("Agent: Run Prompt…");
    await this.answer("What shall the agent do?", text);
  }

  // The palette

  private get quick(): Locator {
    return this.page.locator(".quick-input-widget:visible");
  }

  private get quickField(): Locator {
    return this.quick.locator(".quick-input-box input");
  }

  /** Open the palette and type into it. */
  async palette(text: string): Promise<void> {
    await this.press("F1");
    await this.quickField.fill(`>${text}`);
    await this.quick.locator(`.monaco-list-row[aria-label^="${text.trim()}"]`).first().waitFor();
  }

  /** Run a command from the palette, by its whole name. An open palette never learns of new commands: it is reopened. */
  async command(title: string): Promise<void> {
    const row = this.quick.locator(`.monaco-list-row.focused[aria-label^="${title}"]`);
    await eventually(
      `the palette offers “${title}”`,
      async () => {
        await this.press("F1");
        await this.quickField.fill(`>${title}`);
        try {
          await row.waitFor({ timeout: 3_000 });
          return true;
        } catch {
          await this.press("Escape");
          return false;
        }
      },
      START_LIMIT,
    );
    await this.press("Enter");
  }

  /** Type into the input that a command opened; `about` is part of its title, of its placeholder or of its message. */
  async answer(about: string, text: string): Promise<void> {
    await this.input(about);
    await this.quickField.fill(text);
    await this.press("Enter");
  }

  /** Choose an entry of the list that a command opened. */
  async choose(about: string, entry: string): Promise<void> {
    await this.input(about);
    await this.quickField.fill(entry);
    await this.quick.locator(`.monaco-list-row.focused[aria-label*="${entry}"]`).waitFor();
    await this.press("Enter");
  }

  async input(about: string): Promise<void> {
    await eventually(`an input about “${about}”`, async () => {
      if ((await this.quick.count()) === 0) return false;
      const placeholder = (await this.quickField.getAttribute("placeholder")) ?? "";
      const text = (await this.quick.textContent()) ?? "";
      return !(await this.quickField.inputValue()).startsWith(">") && `${placeholder} ${text}`.includes(about);
    });
  }

  // Files

  /** Open a file of the folder by its name. */
  async openFile(name: string): Promise<void> {
    await this.press("Control+p");
    await this.quickField.fill(name);
    await this.quick.locator(`.monaco-list-row.focused[aria-label*="${name}"]`).waitFor();
    await this.press("Enter");
    await this.editor(name).waitFor();
  }

  /** The editor that shows a file, wherever it stands. */
  editor(name: string): Locator {
    return this.page.locator(`.editor-instance .monaco-editor[data-uri$="/${encodeURI(name)}"]`).first();
  }

  /** Set the cursor into a file's text, at its end. */
  async focusEnd(name: string): Promise<void> {
    await this.editor(name).locator(".view-lines").click();
    await this.press("Control+End");
  }

  /** Wait until an editor shows exactly this text. */
  async shows(editor: Locator, text: string): Promise<void> {
    await eventually(`an editor shows ${JSON.stringify(text)}`, async () => {
      const now = await this.shown(editor);
      if (now !== text) throw new Error(`it shows ${JSON.stringify(now)}`);
      return true;
    });
  }

  /** What an editor shows, with plain spaces. */
  async shown(editor: Locator): Promise<string> {
    const lines = await editor.locator(".view-line").evaluateAll((found) =>
      found
        .map((line) => ({ top: Number.parseFloat((line as HTMLElement).style.top), text: line.textContent }))
        .sort((one, other) => one.top - other.top)
        .map(({ text }) => text),
    );
    return lines.join("\n").replaceAll("\u00a0", " ");
  }

  /** The page of the agent view. */
  get view(): FrameLocator {
    return this.page.frameLocator("iframe.webview.ready").frameLocator("#active-frame");
  }

  // Changes that wait

  /** A side of the change on screen. */
  diff(side: "original" | "modified"): Locator {
    return this.page.locator(`.monaco-diff-editor .editor.${side}`);
  }

  /** A link above a line. */
  lens(title: string): Locator {
    return this.page.locator(".codelens-decoration a").filter({ hasText: new RegExp(`^\\s*${title}\\s*$`) });
  }

  async pressLens(title: string): Promise<void> {
    await this.lens(title).waitFor();
    await this.guard();
    await this.lens(title).click();
  }

  // What it says

  /** An item of ours in the status bar. */
  item(name: "agent" | "approvals" | "mode" | "validation"): Locator {
    return this.page.locator(`.statusbar-item[id="agent-lsp.agent-lsp.agentLsp.${name}"]`);
  }

  /** Wait until a turn runs, or none does. */
  async running(runs: boolean): Promise<void> {
    await eventually(runs ? "a turn runs" : "no turn runs", async () => {
      const text = (await this.item("agent").textContent()) ?? "";
      return text.includes("Agent: ") === runs;
    });
  }

  /** A notification that holds a text. */
  toast(text: string | RegExp): Locator {
    return this.page.locator(".notifications-toasts .notification-toast", { hasText: text });
  }

  /** Rejects as soon as the extension says that something failed. */
  async failure(): Promise<never> {
    const failed = this.page.locator(".notifications-toasts .notification-toast:has(.codicon-error)");
    const message = failed.filter({ hasText: "Agent: " }).first();
    await message.waitFor({ timeout: 0 });
    throw new Error(`VS Code shows: ${(await message.textContent()) ?? ""}`);
  }

  /** Press a button of a notification; one that allows, after the time in which an answer counts as given by mistake. */
  async pressButton(notification: Locator, title: string): Promise<void> {
    const button = notification.getByRole("button", { name: title, exact: true });
    await button.waitFor();
    if (title.includes("Allow")) await this.guard();
    await button.click();
  }

  get dialog(): Locator {
    return this.page.locator(".monaco-dialog-box");
  }
}
