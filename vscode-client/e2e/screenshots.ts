// Takes the pictures of docs/images: each scene in both themes, from the real thing.

import { mkdirSync, rmSync } from "node:fs";
import path from "node:path";

import { CodeServer, type Json } from "./harness/code-server.ts";
import { type Call, Model } from "./harness/model.ts";
import { IMAGES, PYTHON, VSIX } from "./harness/places.ts";
import { type Files, makeProject } from "./harness/project.ts";
import { launchBrowser, makeHome, modelEnvironment, USER } from "./harness/user.ts";
import { Window } from "./harness/window.ts";

const SIZE = { width: 1200, height: 720 };

const THEMES = { dark: "Default Dark Modern", light: "Default Light Modern" };

const SETTINGS: Json = {
  ...USER,
  "editor.minimap.enabled": false,
  "window.commandCenter": false,
  "workbench.layoutControl.enabled": false,
  "editor.fontSize": 13,
};

const SOURCE = `"""Addresses of pages, made from their titles."""

import re

LONGEST = 40


def slug(title: str) -> str:
    """Return a title in lower case, its words joined by hyphens."""
    words = re.findall(r"\\w+", title.lower())
    return "_".join(words)


def address(title: str, base: str = "/") -> str:
    """Return the address of a page below a base, which ends in a slash."""
    if not base.endswith("/"):
        raise ValueError("a base ends in a slash")
    return base + slug(title)


def short_slug(title: str) -> str:
    """Return a slug of at most LONGEST characters."""
    return slug(title)[:LONGEST]
`;

const TEST = `from slugs import short_slug, slug


def test_words_are_joined_by_hyphens() -> None:
    assert slug("Hello, World!") == "hello-world"


def test_short_slug_ends_with_a_whole_word() -> None:
    assert short_slug("a" * 38 + " bcd") == "a" * 38
`;

const PYTEST = {
  name: "pytest",
  command: [PYTHON, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "--junitxml={report}"],
  kind: "test",
  tool: "pytest",
};

const settings = (more: Json = {}): string =>
  JSON.stringify({ validation: { validators: [PYTEST] }, ...more }, undefined, 2);

const FILES: Files = { "slugs.py": SOURCE, "test_slugs.py": TEST, ".agent-lsp/settings.json": settings() };

const HOOKS = {
  hooks: {
    PreToolUse: [
      {
        name: "frozen-files",
        type: "command",
        matcher: "edit_file",
        command: "echo 'slugs.py is frozen until the release' >&2; exit 2",
        blocking: true,
      },
    ],
  },
};

const READ: Call = { name: "read_file", arguments: { path: "slugs.py" } };
const edit = (...edits: readonly { readonly old: string; readonly new: string }[]): Call => ({
  name: "edit_file",
  arguments: { path: "slugs.py", edits },
});
const HYPHENS = { old: '"_".join(words)', new: '"-".join(words)' };
const WHOLE_WORDS = {
  old: "    return slug(title)[:LONGEST]\n",
  new: '    text = slug(title)\n    return text if len(text) <= LONGEST else text[: LONGEST + 1].rpartition("-")[0]\n',
};
const PROMPT = "The tests of slugs.py fail. Find out why and fix it.";
const ANSWER =
  "Two things were wrong in `slugs.py`:\n\n- `slug` joined the words with `_`, the tests want **hyphens**\n" +
  "- `short_slug` cut through a word\n\nBoth are mended, and the tests pass.";

interface Scene {
  readonly name: string;
  readonly files?: Files;
  play(window: Window, model: Model): Promise<void>;
}

const SCENES: readonly Scene[] = [
  {
    name: "approval",
    async play(window, model) {
      await model.calls(READ);
      await model.calls(edit(HYPHENS, WHOLE_WORDS));
      await window.openFile("slugs.py");
      await window.prompt(PROMPT);
      await window.toast("Allow edit_file").waitFor();
    },
  },
  {
    name: "review",
    async play(window, model) {
      await model.calls(READ);
      await model.calls(edit(HYPHENS, WHOLE_WORDS));
      await window.openFile("slugs.py");
      await window.prompt(PROMPT);
      await window.pressButton(window.toast("Allow edit_file"), "Show Change");
      await window.pressLens("Accept Part 1 of 2");
      await window.lens("Part 1 of 2 Accepted").waitFor();
    },
  },
  {
    name: "validation",
    async play(window, model) {
      await model.calls(READ);
      await model.calls(edit(HYPHENS));
      await model.text("The words are joined by hyphens now.");
      await model.calls(edit(WHOLE_WORDS));
      await model.text(ANSWER);
      await window.openFile("slugs.py");
      await window.prompt(PROMPT);
      await window.pressButton(window.toast("Allow edit_file"), "Allow in This Session");
      await window.pressButton(window.toast("Allow trust"), "Allow");
      await window.item("validation").locator(".codicon-pass").waitFor();
      await window.running(false);
    },
  },
  {
    name: "hook",
    files: { ".agent-lsp/settings.json": settings(HOOKS) },
    async play(window, model) {
      await model.calls(READ);
      await model.calls(edit(HYPHENS));
      await model.text("A hook of yours keeps `slugs.py` frozen until the release, so I changed nothing.");
      await window.openFile("slugs.py");
      await window.prompt(PROMPT);
      await window.pressButton(window.toast("Allow trust"), "Allow");
      await window.toast("PreToolUse blocked edit_file").waitFor();
      await window.running(false);
    },
  },
  {
    name: "palette",
    async play(window) {
      await window.openFile("slugs.py");
      await window.palette("Agent: ");
    },
  },
];

const only = process.argv.slice(2);
const scenes = SCENES.filter(({ name }) => only.length === 0 || only.includes(name));
mkdirSync(IMAGES, { recursive: true });
const model = await Model.start();
const browser = await launchBrowser();
try {
  for (const [theme, label] of Object.entries(THEMES)) await take(theme, label);
} finally {
  await browser.close();
  model.stop();
}

/** All scenes in one theme, by a user who has not trusted anything before. */
async function take(theme: string, label: string): Promise<void> {
  const home = makeHome();
  const server = await CodeServer.start({
    home,
    extensions: [VSIX],
    settings: { ...SETTINGS, "workbench.colorTheme": label },
    environment: modelEnvironment(model),
  });
  try {
    for (const scene of scenes) {
      await model.forget();
      const project = makeProject(path.join(home, scene.name), "website", { ...FILES, ...scene.files });
      rmSync(project.path("doubling.py"));
      const window = await Window.open(browser, server, project.root, SIZE, 2);
      await window.ready();
      try {
        await scene.play(window, model);
      } catch (error) {
        await window.picture(`${scene.name}-${theme}`);
        throw error;
      }
      await window.settle();
      await window.page.screenshot({ path: path.join(IMAGES, `${scene.name}-${theme}.png`) });
      console.log(`${scene.name}-${theme}.png`);
      await window.close();
    }
  } finally {
    await server.stop();
    rmSync(home, { recursive: true, force: true });
  }
}
