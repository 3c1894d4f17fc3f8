/** The extension's settings, and the editor's layer of the server's (S2) that is made of them. */

import type { WorkspaceConfiguration } from "vscode";

export const SECTION = "agentLsp";

/** The settings that are the server's, as they are named here; the server has them in snake case. */
export const SERVER_SETTINGS = [
  "model.name",
  "model.baseUrl",
  "model.apiKeyEnv",
  "model.contextWindow",
  "model.maxOutputTokens",
  "model.temperature",
  "model.reasoningEffort",
  "permissions.mode",
  "permissions.deny",
  "permissions.ask",
  "permissions.allow",
  "permissions.additionalDirectories",
  "permissions.approvalTimeout",
  "agent.maxTurns",
  "agent.builtinHooks",
  "validation.enabled",
  "validation.detect",
  "validation.skip",
  "validation.maxRounds",
  "validation.timeout",
  "validation.baseline",
] as const;

/** What holds in Restricted Mode, whatever else is set: the agent reads, and executes nothing. */
const RESTRICTED_DENY = ["edit", "shell", "network"];

type Sections = Record<"model" | "permissions" | "agent" | "validation", Record<string, unknown>>;

/**
 * The editor's layer of the server's settings: what the user has set, and no defaults, which would hide the layers
 * below. Only the user's own values count: those of a workspace belong into `.agent-lsp/settings.json`, where they
 * are asked about before they widen anything.
 */
export function serverSettings(configuration: Pick<WorkspaceConfiguration, "inspect">, trusted: boolean): Sections {
  const sections: Sections = { model: {}, permissions: {}, agent: {}, validation: {} };
  for (const setting of SERVER_SETTINGS) {
    const value: unknown = configuration.inspect(setting)?.globalValue;
    const [section, key] = split(setting);
    if (value !== undefined && value !== null) {
      sections[section][snakeCase(key)] = value;
    }
  }
  if (!trusted) {
    const deny: unknown = sections.permissions.deny;
    sections.permissions.mode = "plan";
    sections.permissions.deny = [...RESTRICTED_DENY, ...(Array.isArray(deny) ? (deny as unknown[]) : [])];
    sections.validation.enabled = false;
  }
  return sections;
}

function split(setting: (typeof SERVER_SETTINGS)[number]): [keyof Sections, string] {
  const dot = setting.indexOf(".");
  return [setting.slice(0, dot) as keyof Sections, setting.slice(dot + 1)];
}

export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** How the server is started. */
export interface LaunchSettings {
  /** The whole command, where the user set one. */
  readonly command: readonly string[];
  /** The Python that the user set; empty for none. */
  readonly interpreter: string;
  /** A folder with wheels, for machines without a package index; empty for none. */
  readonly wheels: string;
  readonly logLevel: string;
  /** The variable that holds the API key. */
  readonly keyVariable: string;
}

export function launchSettings(configuration: Pick<WorkspaceConfiguration, "get">): LaunchSettings {
  const variable = configuration.get<string | null>("model.apiKeyEnv")?.trim() ?? "";
  return {
    command: configuration.get<readonly string[]>("server.command", []).filter((word) => word !== ""),
    interpreter: configuration.get<string>("server.interpreter", "").trim(),
    wheels: configuration.get<string>("server.wheels", "").trim(),
    logLevel: configuration.get<string>("server.logLevel", "info"),
    keyVariable: variable === "" ? "OPENAI_API_KEY" : variable,
  };
}
