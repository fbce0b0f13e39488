"""A client of the language server for tests: speaks the protocol over the server's pipes, and nothing more.

Every wait has a limit, so that a server that hangs fails the test.
"""
import json
import os
import queue
import subprocess
import threading
import time
import urllib.parse

LIMIT = 120  # seconds; the machine may be busy


class Refused(Exception):
    """An error reply; `code` is the protocol's."""

    def __init__(self, error):
        super().__init__(f"{error['code']}: {error['message']}")
        self.code = error["code"]


def uri(path):
    return "file://" + urllib.parse.quote(os.path.abspath(path))


def pathOf(name):
    return urllib.parse.unquote(urllib.parse.urlparse(name).path)


class Client:
    def __init__(self, command, capabilities=None, options=None, cwd=None, start=True, folder=None):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd)
        self.messages = queue.Queue()
        self.replies = {}
        self.diagnostics = {}  # path -> (version, list) as published last
        self.published = []  # (path, version, list, time) in order
        self.shown = []  # messages for the user
        self.progress = []  # what $/progress says: (token, value)
        self.requests = []  # what the server asks: (method, params)
        self.versions = {}
        self.texts = {}
        self.nextId = 0
        threading.Thread(target=self._read, daemon=True).start()
        if start:
            self.initialize(capabilities, options, folder)

    def _read(self):
        stream = self.process.stdout
        while True:
            length = None
            while True:
                line = stream.readline()
                if not line:
                    self.messages.put(None)
                    return
                if line in (b"\r\n", b"\n"):
                    break
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            body = stream.read(length)
            self.messages.put((time.monotonic(), json.loads(body.decode("utf-8"))))

    def sendRaw(self, body):
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def send(self, message):
        self.sendRaw(json.dumps(dict(jsonrpc="2.0", **message)).encode("utf-8"))

    def notify(self, method, params):
        self.send({"method": method, "params": params})

    def ask(self, method, params):
        """Sends a request; returns its id."""
        self.nextId += 1
        self.send({"id": self.nextId, "method": method, "params": params})
        return self.nextId

    def _take(self, deadline):
        try:
            item = self.messages.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise TimeoutError("the server says nothing") from None
        if item is None:
            raise EOFError(f"the server ended with status {self.process.wait(LIMIT)}")
        at, message = item
        if "method" in message and "id" in message:
            self.requests.append((message["method"], message.get("params")))
            self.send({"id": message["id"], "result": None})
        elif "method" in message:
            params = message["params"]
            if message["method"] == "textDocument/publishDiagnostics":
                path = pathOf(params["uri"])
                self.diagnostics[path] = (params.get("version"), params["diagnostics"])
                self.published.append((path, params.get("version"), params["diagnostics"], at))
            elif message["method"] == "window/showMessage":
                self.shown.append(params)
            elif message["method"] == "$/progress":
                self.progress.append((params["token"], params["value"]))
        else:
            self.replies[message["id"]] = message

    def until(self, condition, limit=LIMIT):
        """Handles messages until `condition()` holds."""
        deadline = time.monotonic() + limit
        while not condition():
            self._take(deadline)

    def idle(self, seconds):
        """Handles messages for some time."""
        try:
            self.until(lambda: False, seconds)
        except TimeoutError:
            pass

    def reply(self, number, limit=LIMIT):
        self.until(lambda: number in self.replies, limit)
        message = self.replies.pop(number)
        if "error" in message:
            raise Refused(message["error"])
        return message.get("result")

    def request(self, method, params, limit=LIMIT):
        return self.reply(self.ask(method, params), limit)

    def initialize(self, capabilities=None, options=None, folder=None):
        if capabilities is None:
            capabilities = {
                "textDocument": {
                    "publishDiagnostics": {"relatedInformation": True},
                    "hover": {"contentFormat": ["plaintext"]},
                }
            }
        params = {"processId": os.getpid(), "rootUri": folder and uri(folder), "capabilities": capabilities}
        if options is not None:
            params["initializationOptions"] = options
        self.result = self.request("initialize", params)
        self.notify("initialized", {})
        return self.result

    def open(self, path, text=None, language="cpp"):
        path = os.path.abspath(path)
        if text is None:
            with open(path, encoding="utf-8", newline="") as stream:
                text = stream.read()
        self.texts[path] = text
        self.versions[path] = 1
        self.notify("textDocument/didOpen", {
            "textDocument": {"uri": uri(path), "languageId": language, "version": 1, "text": text}})
        return path

    def change(self, path, text):
        """The whole text anew."""
        path = os.path.abspath(path)
        self.texts[path] = text
        self._changed(path, [{"text": text}])

    def edit(self, path, start, end, new):
        """One range, (line, character) from 0 in UTF-16; keeps no copy of the text."""
        path = os.path.abspath(path)
        self._changed(path, [{"range": span(start, end), "text": new}])

    def _changed(self, path, changes):
        self.versions[path] += 1
        self.notify("textDocument/didChange", {
            "textDocument": {"uri": uri(path), "version": self.versions[path]}, "contentChanges": changes})

    def save(self, path):
        self.notify("textDocument/didSave", {"textDocument": {"uri": uri(path)}})

    def close(self, path):
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri(path)}})

    def findings(self, path, limit=LIMIT):
        """Diagnostics of the newest version, once they are there."""
        path = os.path.abspath(path)
        version = self.versions[path]
        self.until(lambda: self.diagnostics.get(path, (None,))[0] == version, limit)
        return self.diagnostics[path][1]

    def at(self, method, path, line, character, **more):
        return self.request(method, dict(
            textDocument={"uri": uri(path)}, position={"line": line, "character": character}, **more))

    def actions(self, path, start, end=None):
        return self.request("textDocument/codeAction", {
            "textDocument": {"uri": uri(path)}, "range": span(start, end or start),
            "context": {"diagnostics": []}})

    def hints(self, path, lines=10000):
        return self.request("textDocument/inlayHint", {
            "textDocument": {"uri": uri(path)}, "range": span((0, 0), (lines, 0))})

    def shutdown(self):
        """Ends in order; returns the server's exit status."""
        self.request("shutdown", None)
        self.notify("exit", None)
        return self.process.wait(LIMIT)


def span(start, end):
    return {"start": {"line": start[0], "character": start[1]},
            "end": {"line": end[0], "character": end[1]}}


def place(range_):
    """'3:4-3:9', counted as the protocol does."""
    return "-".join(f"{end['line']}:{end['character']}" for end in (range_["start"], range_["end"]))


def show(findings):
    for each in findings:
        print(f"{place(each['range'])} {each['code']}: {each['message']}")
        for note in each.get("relatedInformation", []):
            where = note["location"]
            print(f"  {os.path.basename(pathOf(where['uri']))} {place(where['range'])} {note['message']}")


def apply(text, edits):
    """`text` with the TextEdits made."""
    lines = text.splitlines(keepends=True) or [""]

    def offset(position):
        before = sum(len(line) for line in lines[: position["line"]])
        line = lines[position["line"]] if position["line"] < len(lines) else ""
        units = line.encode("utf-16-le")[: 2 * position["character"]]
        return before + len(units.decode("utf-16-le"))

    for edit in sorted(edits, key=lambda each: offset(each["range"]["start"]), reverse=True):
        text = text[: offset(edit["range"]["start"])] + edit["newText"] + text[offset(edit["range"]["end"]):]
    return text


def database(directory, files, flags=()):
    """Writes a compile_commands.json for `files` (relative), which read a few names of LibTorch."""
    commands = [{"directory": os.path.abspath(directory), "file": name,
                 "arguments": ["clang++", "-std=c++17", "-isystem", os.environ["TINY_TORCH"], *flags, "-c", name]}
                for name in files]
    with open(os.path.join(directory, "compile_commands.json"), "w", encoding="utf-8") as stream:
        json.dump(commands, stream)


def server(*arguments):
    """The command line of the server under test, with a cache of the test's own."""
    return [os.environ["DEVICE_TIDY"], "--lsp", f"--cache-dir={os.getcwd()}/cache", *arguments]
