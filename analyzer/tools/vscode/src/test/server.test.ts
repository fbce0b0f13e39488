// The protocol library that the extension's client is made of, against the real server: DEVICE_TIDY names it.
import * as assert from "node:assert";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, TestContext } from "node:test";
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

const python = `import torch
x = torch.ones(2)
y = torch.ones(2, device="cuda")
z = x + y
`;

/** A file, and what of it the server says. */
interface Conversation {
  name: string;
  languageId: string;
  source: string;
  comment: string;
  line: number;
  column: number;
  hints: string[];
}
const conversations: Conversation[] = [
  { name: "train.cpp", languageId: "cpp", source, comment: "NOLINT", line: 4, column: 11, hints: ["@ cpu", "@ cuda"] },
  { name: "train.py", languageId: "python", source: python, comment: "noqa", line: 3, column: 4, hints: [] },
];

for (const each of conversations)
  test(`a conversation about ${each.name}`, { skip: !tool && "DEVICE_TIDY is not set" }, (context) => converse(each, context));

async function converse(told: Conversation, context: TestContext): Promise<void> {
  const place = mkdtempSync(join(tmpdir(), "device-tidy-"));
  const file = join(place, told.name);
  const include = process.env.TINY_TORCH ?? join(__dirname, "../../../../../test/lit/lsp/Inputs/tiny-torch");
  writeFileSync(file, told.source);
  const args = ["clang++", "-std=c++17", "-isystem", include, "-c", file];
  if (told.languageId === "cpp")
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
    textDocument: { uri, languageId: told.languageId, version: 1, text: readFileSync(file, "utf8") },
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
    `Ignore 'device-mixed-op' on this line (${told.comment})`,
    "Fix all findings of device-tidy in this file",
  ]);
  const hover = await connection.sendRequest(HoverRequest.type, { textDocument, position: { line: told.line, character: told.column } });
  assert.match(JSON.stringify(hover), /'x' is a tensor on cpu/);
  const range = { start: { line: 0, character: 0 }, end: { line: 9, character: 0 } };
  const hints = await connection.sendRequest(InlayHintRequest.type, { textDocument, range });
  if (told.hints.length > 0)
    assert.deepStrictEqual(hints?.map((each) => each.label), told.hints);

  await connection.sendRequest(ShutdownRequest.type);
  await connection.sendNotification(ExitNotification.type);
  assert.strictEqual(await ended, 0);
  connection.dispose();
}
