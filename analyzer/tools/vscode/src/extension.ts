// Starts `device-tidy --lsp` for C++ and Python files and tells it of the user's settings.
import { commands, ExtensionContext, window, workspace } from "vscode";
import { LanguageClient } from "vscode-languageclient/node";

import { commandLine, serverSettings } from "./settings";

const section = "device-tidy";
let client: LanguageClient | undefined;

function read(name: string): unknown {
  return workspace.getConfiguration(section).get(name);
}

async function start(): Promise<void> {
  client = new LanguageClient(section, section, commandLine(read), {
    documentSelector: [
      { scheme: "file", language: "cpp" },
      { scheme: "file", language: "python" },
    ],
    initializationOptions: serverSettings(read),
  });
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    const { command } = commandLine(read);
    window.showErrorMessage(`${command} could not be started: ${error}. Set "device-tidy.path" to the program.`);
  }
}

async function stop(): Promise<void> {
  await client?.stop();
  client = undefined;
}

export async function activate(context: ExtensionContext): Promise<void> {
  context.subscriptions.push(
    commands.registerCommand("device-tidy.restart", async () => {
      await stop();
      await start();
    }),
    workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration(section))
        await client?.sendNotification("workspace/didChangeConfiguration", {
          settings: { [section]: serverSettings(read) },
        });
    }),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  await stop();
}
