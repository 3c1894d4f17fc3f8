/** The settings: what is contributed is what is read, and what is sent is what the server knows. */

import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { SERVER_SETTINGS, launchSettings, serverSettings, snakeCase } from "../src/settings";

interface Property {
  readonly scope: string;
  readonly default: unknown;
}

interface Manifest {
  readonly contributes: {
    readonly configuration: readonly { readonly properties: Readonly<Record<string, Property>> }[];
  };
}

const read = (name: string): unknown => JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), "utf8"));

const properties = new Map(
  (read("package.json") as Manifest).contributes.configuration.flatMap((group) => Object.entries(group.properties)),
);

function configuration(values: Readonly<Record<string, unknown>>): Parameters<typeof serverSettings>[0] {
  return { inspect: (key: string) => ({ key, globalValue: values[key] }) } as never;
}

test("every setting of the server is contributed, known to the server, and cannot be set by a workspace", () => {
  const schema = read("schemas/settings.schema.json") as {
    readonly $defs: Readonly<Record<string, { readonly properties: object }>>;
  };
  for (const setting of SERVER_SETTINGS) {
    const [section = "", key = ""] = setting.split(".");
    const known = schema.$defs[`${section[0]?.toUpperCase()}${section.slice(1).replace(/s$/, "")}Settings`];
    expect(Object.keys(known?.properties ?? {}), setting).toContain(snakeCase(key));
    expect(properties.get(`agentLsp.${setting}`)?.scope, setting).toBe("application");
  }
});

test("every contributed setting is read", () => {
  const own = ["command", "interpreter", "wheels", "autoStart", "logLevel"].map((key) => `server.${key}`);
  const readOnes = [...SERVER_SETTINGS, ...own].map((key) => `agentLsp.${key}`);
  expect([...properties.keys()].sort()).toEqual(readOnes.sort());
});

test("what names a program cannot be set by an untrusted workspace", () => {
  const { capabilities } = read("package.json") as {
    readonly capabilities: { readonly untrustedWorkspaces: { readonly restrictedConfigurations: readonly string[] } };
  };
  const overridable = [...properties].filter(([, { scope }]) => scope === "machine-overridable").map(([key]) => key);
  expect(capabilities.untrustedWorkspaces.restrictedConfigurations).toEqual(overridable);
});

test("only what the user set is sent, in the server's words", () => {
  const values = { "model.baseUrl": "http://localhost/v1", "permissions.mode": null, "validation.maxRounds": 2 };
  expect(serverSettings(configuration(values), true)).toEqual({
    model: { base_url: "http://localhost/v1" },
    permissions: {},
    agent: {},
    validation: { max_rounds: 2 },
  });
});

test("in Restricted Mode the agent only reads, whatever is set", () => {
  const values = { "permissions.mode": "bypass", "permissions.deny": ["read(x)"], "validation.enabled": true };
  expect(serverSettings(configuration(values), false)).toMatchObject({
    permissions: { mode: "plan", deny: ["edit", "shell", "network", "read(x)"] },
    validation: { enabled: false },
  });
});

test("settings that are not set have their defaults", () => {
  const none = { get: (_key: string, value: unknown) => value ?? null } as never;
  expect(launchSettings(none)).toEqual({
    command: [],
    interpreter: "",
    wheels: "",
    logLevel: "info",
    keyVariable: "OPENAI_API_KEY",
  });
});
