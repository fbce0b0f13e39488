// The protocol library that the extension's client is made of, against the real server: DEVICE_TIDY names it.
import * as assert from "node:assert";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import {
  CodeAction,
  CodeActionRequest,
  createProtocolConnection,
  DidOpenTextDocumentNotification,
  ExitNotification,
  HoverRequest,
  InitializedNotification,
  InitializeRequest,
  InlayHintRequest,
  PublishDiagnosticsNotification,
  PublishDiagnosticsParams,
  ShutdownRequest,
  StreamMessageReader,
  StreamMessageWriter,
} from "vscode-languageserver-protocol/node";

import { serverSettings } from "../settings";

const tool = process.env.DEVICE_TIDY;
const source = `#include <torch/torch.h>
void train() {
  auto x = torch::randn({2, 2});
  auto y = torch::randn({2, 2}, torch::kCUDA);
  auto z = x + y;
}
`;

test("a conversation with the server", { skip: !tool && "DEVICE_TIDY is not set" }, async (context) => {
  const place = mkdtempSync(join(tmpdir(), "device-tidy-"));
  const file = join(place, "train.cpp");
  const include = process.env.TINY_TORCH ?? join(__dirname, "../../../../../test/lit/lsp/Inputs/tiny-torch");
  writeFileSync(file, source);
  const args = ["clang++", "-std=c++17", "-isystem", include, "-c", file];
  writeFileSync(join(place, "compile_commands.json"), JSON.stringify([{ directory: place, file, arguments: args }]));

  const server = spawn(tool!, ["--lsp", `--cache-dir=${join(place, "cache")}`]);
  const ended = new Promise((resolve) => server.on("exit", resolve));
  // Also when an assertion fails: a server that runs on would keep the test from ending.
  context.after(() => {
    server.kill();
    rmSync(place, { recursive: true });
  });
  const connection = createProtocolConnection(
    new StreamMessageReader(server.stdout),
    new StreamMessageWriter(server.stdin),
  );
  const published = new Promise<PublishDiagnosticsParams>((resolve) =>
    connection.onNotification(PublishDiagnosticsNotification.type, resolve),
  );
  connection.listen();
  const settings = serverSettings((name) => (name === "inlayHints" ? true : undefined));
  await connection.sendRequest(InitializeRequest.type, {
    processId: process.pid,
    rootUri: null,
    capabilities: { textDocument: { publishDiagnostics: { relatedInformation: true } } },
    initializationOptions: settings,
  });
  await connection.sendNotification(InitializedNotification.type, {});
  const uri = pathToFileURL(file).toString();
  await connection.sendNotification(DidOpenTextDocumentNotification.type, {
    textDocument: { uri, languageId: "cpp", version: 1, text: readFileSync(file, "utf8") },
  });

  const { diagnostics } = await published;
  assert.deepStrictEqual(diagnostics.map((each) => each.code), ["device-mixed-op"]);
  assert.strictEqual(diagnostics[0].relatedInformation?.length, 3);
  const textDocument = { uri };
  const actions = await connection.sendRequest(CodeActionRequest.type, {
    textDocument,
    range: diagnostics[0].range,
    context: { diagnostics },
  });
  assert.deepStrictEqual((actions as CodeAction[]).map((each) => each.title), [
    "Move 'x' to the device of 'y'",
    "Ignore 'device-mixed-op' on this line (NOLINT)",
    "Fix all findings of device-tidy in this file",
  ]);
  const hover = await connection.sendRequest(HoverRequest.type, { textDocument, position: { line: 4, character: 11 } });
  assert.match(JSON.stringify(hover), /'x' is a tensor on cpu/);
  const range = { start: { line: 0, character: 0 }, end: { line: 9, character: 0 } };
  const hints = await connection.sendRequest(InlayHintRequest.type, { textDocument, range });
  assert.deepStrictEqual(hints?.map((each) => each.label), ["@ cpu", "@ cuda"]);

  await connection.sendRequest(ShutdownRequest.type);
  await connection.sendNotification(ExitNotification.type);
  assert.strictEqual(await ended, 0);
  connection.dispose();
});
