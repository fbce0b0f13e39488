#include "analyzer/python/Parse.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cstdlib>

namespace devicetidy::python {
namespace {

// A model of libraries: the packages it is for, and its syntax tree.
struct ModelSource {
  std::string_view packages;
  const unsigned char *tree;
  std::size_t size;
};

#include "PythonSources.inc"

llvm::StringRef textOf(const unsigned char *bytes, std::size_t size) {
  return {reinterpret_cast<const char *>(bytes), size};
}

Launch launchOf(const llvm::json::Object &read) {
  Launch launch;
  launch.command = read.getString("command").value_or("").str();
  for (const llvm::json::Value &path : *read.getArray("programs"))
    launch.programs.push_back(path.getAsString().value_or("").str());
  launch.where.file = read.getString("path").value_or("").str();
  launch.where.line = launch.where.endLine = static_cast<std::uint32_t>(read.getInteger("line").value_or(1));
  launch.where.column = static_cast<std::uint32_t>(read.getInteger("column").value_or(0)) + 1;
  launch.where.endColumn = launch.where.column + static_cast<std::uint32_t>(launch.command.size());
  return launch;
}

// A line of what parse.py wrote.
bool readLine(llvm::StringRef line, Parsed &parsed, std::string &error) {
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(line);
  if (!value) {
    error = llvm::toString(value.takeError());
    return false;
  }
  if (const llvm::json::Array *launches = value->getAsObject()->getArray("launches")) {
    for (const llvm::json::Value &each : *launches)
      parsed.launches.push_back(launchOf(*each.getAsObject()));
    return true;
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

/// A file of this run that is removed at its end.
struct TemporaryFile {
  explicit TemporaryFile(llvm::StringRef suffix)
      : problem(llvm::sys::fs::createTemporaryFile("device-tidy", suffix, path)), remover(path) {}

  bool write(llvm::StringRef text) const {
    std::error_code code = problem;
    if (code)
      return false;
    llvm::raw_fd_ostream out(path, code);
    if (!code)
      out << text;
    return !code && !out.has_error();
  }

  llvm::SmallString<128> path;
  std::error_code problem;
  llvm::FileRemover remover;
};

} // namespace

bool parse(const std::string &interpreter, const std::vector<std::string> &paths, Parsed &parsed,
           std::string &error) {
  const auto program = llvm::sys::findProgramByName(interpreter);
  if (!program) {
    error =
        "Python files are read with " + interpreter + ", which was not found; name one with --python=FILE";
    return false;
  }
  std::string list;
  for (const std::string &path : paths)
    list += path + "\n";
  const TemporaryFile input("txt"), output("json"), problems("txt");
  if (!input.write(list)) {
    error = "cannot write " + input.path.str().str();
    return false;
  }
  // Isolated: nothing of the project or of the user's environment is imported.
  const std::vector<llvm::StringRef> arguments = {*program, "-I", "-S", "-c", parseScript};
  const int status = llvm::sys::ExecuteAndWait(
      *program, arguments, std::nullopt,
      {llvm::StringRef(input.path), llvm::StringRef(output.path), llvm::StringRef(problems.path)}, 0, 0,
      &error);
  const auto written = llvm::MemoryBuffer::getFile(output.path);
  if (!written || status != 0) {
    const auto said = llvm::MemoryBuffer::getFile(problems.path);
    const llvm::StringRef text = said ? (*said)->getBuffer().rtrim() : llvm::StringRef();
    error = *program + " could not read the Python files: " +
            (error.empty() ? text.substr(text.rfind('\n') + 1).str() : error);
    return false;
  }
  llvm::SmallVector<llvm::StringRef, 0> lines;
  (*written)->getBuffer().split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef line : lines)
    if (!readLine(line, parsed, error)) {
      error = "what " + *program + " wrote cannot be read: " + error;
      return false;
    }
  return true;
}

void parseModels(const std::set<std::string> &packages, Parsed &parsed) {
  std::string error;
  bool isRead = readLine(textOf(modelClasses, sizeof modelClasses), parsed, error);
  for (const ModelSource &source : modelSources)
    if (std::any_of(packages.begin(), packages.end(), [&](const std::string &package) {
          return source.packages.find(" " + package + " ") != std::string_view::npos;
        }))
      isRead &= readLine(textOf(source.tree, source.size), parsed, error);
  if (!isRead) // the build wrote them
    std::abort();
}

} // namespace devicetidy::python
