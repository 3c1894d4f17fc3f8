/** The schema of the settings file is the one that the server's types give. */

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { expect, test } from "vitest";

const at = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const python = process.env.PYTHON ?? at("../../.venv/bin/python");

test.skipIf(!existsSync(python))("settings.schema.json is up to date", () => {
  const made: unknown = JSON.parse(execFileSync(python, [at("../schemas/make_schema.py")], { encoding: "utf8" }));
  expect(JSON.parse(readFileSync(at("../schemas/settings.schema.json"), "utf8"))).toEqual(made);
});
