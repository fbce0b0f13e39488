// Runs in VS Code's extension host, beside the installed extension, in the folder that run.py made.
const assert = require("node:assert");
const fs = require("node:fs");
const path = require("node:path");
const vscode = require("vscode");

const folder = vscode.workspace.workspaceFolders[0].uri;
const train = vscode.Uri.joinPath(folder, "train.cpp");

async function until(what, ask) {
  for (let tries = 0; tries < 200; ++tries) {
    const answer = await ask();
    if (answer) return answer;
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  throw new Error(`waited in vain for ${what}`);
}

const codes = (uri) => vscode.languages.getDiagnostics(uri).map((each) => each.code?.value ?? each.code);
const findings = (uri, count) => until(`${count} findings`, () => codes(uri).length === count);
const hints = async (uri) => {
  const all = new vscode.Range(0, 0, 20, 0);
  const found = await vscode.commands.executeCommand("vscode.executeInlayHintProvider", uri, all);
  return found.map((each) => each.label);
};

async function findingsAndFix() {
  const document = await vscode.workspace.openTextDocument(train);
  await vscode.window.showTextDocument(document);
  await findings(train, 1);
  const [finding] = vscode.languages.getDiagnostics(train);
  assert.strictEqual(finding.source, "device-tidy");
  assert.ok(finding.relatedInformation.length >= 2);
  const actions = await vscode.commands.executeCommand("vscode.executeCodeActionProvider", train, finding.range);
  const fix = actions.find((each) => each.title === "Move '批次' to the device of 'weight'");
  assert.ok(fix, JSON.stringify(actions.map((each) => each.title)));
  await vscode.workspace.applyEdit(fix.edit);
  assert.match(document.getText(), /auto z = 批次\.to\(weight\.device\(\)\) \+ weight;/);
  await findings(train, 0);
  await vscode.commands.executeCommand("undo");
  await findings(train, 1);
}

async function questions() {
  const use = new vscode.Position(4, 12);
  const hover = await vscode.commands.executeCommand("vscode.executeHoverProvider", train, use);
  assert.match(hover.map((each) => each.contents.map((text) => text.value).join("\n")).join("\n"), /批次.*is a tensor on cpu/);
  const moved = await vscode.commands.executeCommand("vscode.executeImplementationProvider", train, new vscode.Position(4, 20));
  assert.strictEqual((moved[0].range ?? moved[0].targetRange).start.line, 3);
}

async function settings() {
  assert.deepStrictEqual(await hints(train), []);
  const configuration = vscode.workspace.getConfiguration("device-tidy");
  await configuration.update("inlayHints", true, vscode.ConfigurationTarget.Workspace);
  await until("inlay hints", async () => (await hints(train)).length === 2);
  assert.deepStrictEqual(await hints(train), ["@ cpu", "@ cuda"]);
  await configuration.update("checks", "-device-mixed-op", vscode.ConfigurationTarget.Workspace);
  await findings(train, 0);
  await configuration.update("checks", undefined, vscode.ConfigurationTarget.Workspace);
  await findings(train, 1);
}

async function python() {
  const script = vscode.Uri.joinPath(folder, "train.py");
  const document = await vscode.workspace.openTextDocument(script);
  await vscode.window.showTextDocument(document);
  await findings(script, 1);
  const [finding] = vscode.languages.getDiagnostics(script);
  const actions = await vscode.commands.executeCommand("vscode.executeCodeActionProvider", script, finding.range);
  const fix = actions.find((each) => each.title === "Move 'x' to the device of 'y'");
  assert.ok(fix, JSON.stringify(actions.map((each) => each.title)));
  await vscode.workspace.applyEdit(fix.edit);
  assert.match(document.getText(), /z = x\.to\(y\.device\) \+ y/);
  await findings(script, 0);
}

async function restart() {
  await vscode.commands.executeCommand("device-tidy.restart");
  await findings(train, 1);
}

exports.run = async () => {
  const result = path.join(folder.fsPath, "result.txt");
  const write = (line) => fs.appendFileSync(result, line + "\n");
  try {
    write(`VS Code ${vscode.version}`);
    for (const test of [findingsAndFix, questions, settings, python, restart]) {
      await test();
      write(`passed: ${test.name}`);
    }
    write("done");
  } catch (error) {
    write(`failed: ${error.stack}`);
    write("done");
    throw error;
  }
};
