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
  parsed.schema.clear();
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
  constexpr std::size_t longest = 200;
  text = text.rtrim();
  return text.substr(text.rfind('\n') + 1).take_back(longest).str();
}

// Why `program` read nothing.
std::string reasonOf(const std::string &program, const Answer &answer) {
  const llvm::StringRef ours = "it is Python "; // as parse.py says it
  if (const std::string said = lastLine(answer.problems); llvm::StringRef(said).starts_with(ours))
    return said;
  // One that is too old does not understand what it was told.
  Answer version;
  std::string error;
  if (!run(program, {"-V"}, {}, nullptr, version, error))
    return error;
  const std::string told = version.output + version.problems;
  llvm::StringRef named = llvm::StringRef(told).trim();
  if (!named.consume_front("Python "))
    return "it is no Python interpreter";
  if (named.starts_with("2."))
    return ours.str() + named.str() + ", and 3.8 or newer is needed";
  return lastLine(answer.problems);
}

void addBroken(const std::string &reason, Parsed &parsed) {
  parsed.files.push_back(std::make_unique<File>(llvm::json::Object{{"error", reason}}, parsed.schema));
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
  if (const int signal = answer.status - 128; signal > 0) { // one of the files was too much for it
    if (paths.size() == 1) {
      addBroken("signal " + std::to_string(signal) + " ended " + program + " on it", parsed);
      parsed.files.back()->path = paths.front();
      return true;
    }
    const auto middle = paths.begin() + static_cast<std::ptrdiff_t>(paths.size() / 2);
    return parse(interpreter, {paths.begin(), middle}, texts, stop, parsed, error) &&
           parse(interpreter, {middle, paths.end()}, texts, stop, parsed, error);
  }
  if (answer.status != 0 || answer.output.empty()) {
    error = program + " could not read the Python files: " + reasonOf(program, answer) + hint;
    return false;
  }
  const std::size_t first = parsed.files.size();
  if (!readLines(answer.output, parsed, error)) {
    error = "what " + program + " wrote cannot be read: " + error + hint;
    return false;
  }
  if (parsed.files.size() != first + paths.size()) {
    error = program + " did not read all Python files" + hint;
    return false;
  }
  for (std::size_t i = 0; i < paths.size(); ++i)
    parsed.files[first + i]->path = paths[i]; // JSON has no bytes that are no text
  return true;
}

} // namespace devicetidy::python
