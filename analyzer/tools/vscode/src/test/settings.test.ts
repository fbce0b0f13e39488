import * as assert from "node:assert";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { commandLine, serverSettings } from "../settings";

const reading = (values: Record<string, unknown>) => (name: string) => values[name];

test("the command line", () => {
  assert.deepStrictEqual(commandLine(reading({})), { command: "device-tidy", args: ["--lsp"] });
  assert.deepStrictEqual(commandLine(reading({ path: "/opt/device-tidy", arguments: ["-p", "build", 7] })), {
    command: "/opt/device-tidy",
    args: ["--lsp", "-p", "build"],
  });
});

test("settings the server knows", () => {
  const unset = {
    inlayHints: null,
    checks: null,
    level: null,
    warningsAsErrors: null,
    headerFilter: null,
    compilationDatabasePath: null,
  };
  assert.deepStrictEqual(serverSettings(reading({})), unset);
  assert.deepStrictEqual(serverSettings(reading({ compilationDatabasePath: "", level: "latent", path: "x" })), {
    ...unset,
    level: "latent",
  });
  assert.deepStrictEqual(serverSettings(reading({ inlayHints: false, checks: "-*" })), {
    ...unset,
    inlayHints: false,
    checks: "-*",
  });
});

test("the page of settings shows each of them", () => {
  const { contributes } = JSON.parse(readFileSync(join(__dirname, "../../package.json"), "utf8"));
  for (const name of Object.keys(serverSettings(() => undefined)))
    assert.ok(contributes.configuration.properties[`device-tidy.${name}`], name);
});

test("what nobody has set has no value that would speak against configuration files", () => {
  const { contributes } = JSON.parse(readFileSync(join(__dirname, "../../package.json"), "utf8"));
  const defaults = Object.fromEntries(
    Object.entries(contributes.configuration.properties).map(([name, property]) => [
      name.replace("device-tidy.", ""),
      (property as { default: unknown }).default,
    ]),
  );
  for (const [name, value] of Object.entries(serverSettings(reading(defaults)))) assert.strictEqual(value, null, name);
});
