/** What package.json promises: every command is there, and no key that one types answers anything. */

import { readFileSync, readdirSync } from "node:fs";

import { expect, test } from "vitest";

interface Command {
  readonly command: string;
  readonly category: string;
  readonly title: string;
}

interface Key {
  readonly command: string;
  readonly key: string;
  readonly when?: string;
}

interface Manifest {
  readonly contributes: {
    readonly commands: readonly Command[];
    readonly keybindings: readonly Key[];
    readonly menus: Readonly<Record<string, readonly { readonly command?: string }[]>>;
    readonly walkthroughs: readonly { readonly steps: readonly { readonly media: { readonly markdown: string } }[] }[];
  };
}

const at = (name: string): URL => new URL(`../${name}`, import.meta.url);
const { contributes } = JSON.parse(readFileSync(at("package.json"), "utf8")) as Manifest;
const table = readFileSync(at("src/commands.ts"), "utf8");
const registered = [...table.matchAll(/^ {4}"(agentLsp\.\w+)":/gm)].map(([, name]) => name);

test("the palette has every command, under one category", () => {
  const titles = contributes.commands.map(({ category, title }) => `${category}: ${title}`);
  const promised =
    "Run Prompt…, Run Prompt on Selection…, Fix Diagnostics in File, Explain Selection, Continue Session…, New Session, Cancel, Run Validation, Review Pending Approvals, Undo Last Turn, Show Transcript, Set Mode…, Trust Workspace, Show Hooks, Show Log, Restart Server, Open Settings";
  expect(titles).toEqual(expect.arrayContaining(promised.split(", ").map((title) => `Agent: ${title}`)));
});

test("what is contributed is registered, and the other way round", () => {
  expect(contributes.commands.map(({ command }) => command).sort()).toEqual([...registered].sort());
  const used = [...Object.values(contributes.menus).flat(), ...contributes.keybindings].flatMap(
    ({ command }) => command ?? [],
  );
  expect(registered).toEqual(expect.arrayContaining(used));
});

test("no key that one types answers anything, and none answers outside of the change", () => {
  for (const { command, key, when } of contributes.keybindings) {
    expect(key, command).toMatch(/^ctrl\+k alt\+\w$/);
    if (/accept|reject/i.test(command)) {
      expect(when).toBe("resourceScheme == agent-change && editorTextFocus && editorReadonly");
    }
  }
});

test("the walkthrough's pages are there", () => {
  const named = contributes.walkthroughs.flatMap(({ steps }) => steps.map(({ media }) => media.markdown));
  expect(named.sort()).toEqual(
    readdirSync(at("media/walkthrough"))
      .map((name) => `media/walkthrough/${name}`)
      .sort(),
  );
});

test("the lock file names no place to fetch from", () => {
  expect(readFileSync(at("package-lock.json"), "utf8").includes('"resolved"')).toBe(false);
});
