import * as assert from "node:assert";
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
  assert.deepStrictEqual(serverSettings(reading({ compilationDatabasePath: "", level: "latent", path: "x" })), {
    level: "latent",
  });
  assert.deepStrictEqual(serverSettings(reading({ inlayHints: false, checks: "-*" })), {
    inlayHints: false,
    checks: "-*",
  });
});
