// What the user set, as the server takes it. Knows nothing of VS Code, so that it can be tested without.

/** Reads one setting of the section "device-tidy"; undefined when there is none. */
export type Read = (name: string) => unknown;

/** The command line of the server. */
export function commandLine(read: Read): { command: string; args: string[] } {
  const path = read("path");
  const more = read("arguments");
  return {
    command: typeof path === "string" && path !== "" ? path : "device-tidy",
    args: ["--lsp", ...(Array.isArray(more) ? more.filter((each) => typeof each === "string") : [])],
  };
}

/** Settings the server knows by name; null for what is not set, so that `.device-tidy` files hold there. */
export function serverSettings(read: Read): Record<string, unknown> {
  const settings: Record<string, unknown> = {};
  for (const name of ["inlayHints", "checks", "level", "warningsAsErrors", "headerFilter", "compilationDatabasePath"]) {
    const value = read(name);
    settings[name] = value === undefined || value === "" ? null : value;
  }
  return settings;
}
