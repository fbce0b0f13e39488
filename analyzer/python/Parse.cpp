#include "analyzer/python/Parse.h"

#include "ParseScript.inc"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

namespace devicetidy::python {
namespace {

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
  for (llvm::StringRef line : lines) {
    llvm::Expected<llvm::json::Value> value = llvm::json::parse(line);
    if (!value) {
      error = "what " + *program + " wrote cannot be read: " + llvm::toString(value.takeError());
      return false;
    }
    if (const llvm::json::Array *classes = value->getAsObject()->getArray("classes")) {
      for (const llvm::json::Value &each : *classes) {
        parsed.schema.emplace_back();
        for (const llvm::json::Value &name : *each.getAsArray())
          parsed.schema.back().push_back(name.getAsString().value_or("").str());
      }
    } else {
      parsed.files.push_back(std::make_unique<File>(std::move(*value), parsed.schema));
    }
  }
  return true;
}

} // namespace devicetidy::python
