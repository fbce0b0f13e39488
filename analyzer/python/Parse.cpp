#include "analyzer/python/Parse.h"

#include "analyzer/python/Process.h"

#include "ParseScript.inc"

#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

namespace devicetidy::python {
namespace {

// A line of what parse.py wrote.
bool readLine(llvm::StringRef line, Parsed &parsed, std::string &error) {
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(line);
  if (!value) {
    error = llvm::toString(value.takeError());
    return false;
  }
  const llvm::json::Array *classes = value->getAsObject()->getArray("classes");
  if (!classes) {
    parsed.files.push_back(std::make_unique<File>(std::move(*value), parsed.schema));
    return true;
  }
  for (const llvm::json::Value &each : *classes) {
    parsed.schema.emplace_back();
    for (const llvm::json::Value &name : *each.getAsArray())
      parsed.schema.back().push_back(name.getAsString().value_or("").str());
  }
  return true;
}

// As parse.py reads it.
std::string inputFor(const std::vector<std::string> &paths, const Texts &texts) {
  std::string input;
  for (const std::string &path : paths) {
    input += path + '\0';
    if (const auto given = texts.find(path); given != texts.end())
      llvm::raw_string_ostream(input) << llvm::json::Value(llvm::json::fixUTF8(given->second));
    input += '\0';
  }
  return input;
}

std::string lastLine(llvm::StringRef text) {
  text = text.rtrim();
  return text.substr(text.rfind('\n') + 1).str();
}

} // namespace

bool readLines(llvm::StringRef text, Parsed &parsed, std::string &error) {
  llvm::SmallVector<llvm::StringRef, 0> lines;
  text.split(lines, '\n', -1, /*KeepEmpty=*/false);
  return std::all_of(lines.begin(), lines.end(),
                     [&](llvm::StringRef line) { return readLine(line, parsed, error); });
}

std::string findInterpreter(const std::string &interpreter, std::string &error) {
  const auto program = llvm::sys::findProgramByName(interpreter);
  if (program)
    return *program;
  error = "Python files are read with " + interpreter + ", which was not found; name one with --python=FILE";
  return {};
}

bool parse(const std::string &interpreter, const std::vector<std::string> &paths, const Texts &texts,
           const std::atomic<bool> *stop, Parsed &parsed, std::string &error) {
  const std::string program = findInterpreter(interpreter, error);
  if (program.empty())
    return false;
  const std::string hint = "; name another interpreter with --python=FILE";
  Answer answer;
  // Isolated: nothing of the project or of the user's environment is imported.
  if (!run(program, {"-I", "-S", "-c", parseScript}, inputFor(paths, texts), stop, answer, error)) {
    error += hint;
    return false;
  }
  if (answer.isStopped)
    return false;
  if (answer.status != 0 || answer.output.empty()) {
    const std::string said = lastLine(answer.problems);
    error = program + " could not read the Python files: " +
            (!said.empty()          ? said
             : answer.status >= 128 ? "signal " + std::to_string(answer.status - 128) + " ended it"
                                    : "exit code " + std::to_string(answer.status)) +
            hint;
    return false;
  }
  if (!readLines(answer.output, parsed, error)) {
    error = "what " + program + " wrote cannot be read: " + error + hint;
    return false;
  }
  if (parsed.files.size() != paths.size()) {
    error = program + " read " + std::to_string(parsed.files.size()) + " of " + std::to_string(paths.size()) +
            " Python files" + hint;
    return false;
  }
  for (std::size_t i = 0; i < paths.size(); ++i)
    parsed.files[i]->path = paths[i]; // JSON has no bytes that are no text
  return true;
}

} // namespace devicetidy::python
