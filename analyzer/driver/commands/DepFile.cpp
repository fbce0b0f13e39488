#include "analyzer/driver/commands/DepFile.h"

#include "analyzer/driver/support/WholeFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <set>

namespace devicetidy::driver {
namespace {

/// `path` as a name in a rule; Make and Ninja read the same escapes.
std::string escaped(std::string_view path) {
  std::string text;
  for (char c : path) {
    if (c == ' ' || c == '#')
      text += '\\';
    else if (c == '$')
      text += '$';
    text += c;
  }
  return text;
}

bool mentions(const std::string &file, const std::string &name) {
  const auto text = llvm::MemoryBuffer::getFile(file);
  return text && (*text)->getBuffer().contains(name);
}

} // namespace

std::string writeDependencyRules(const std::string &file, const std::string &target,
                                 const std::vector<Unit> &units) {
  const std::string marker = target + ".errors-to-mend";
  std::set<std::string> files;
  bool hasErrors = false;
  for (const Unit &unit : units) {
    files.insert(unit.mainFile.str());
    for (Name each : unit.files)
      files.insert(each.str());
    hasErrors |= !unit.parseErrors.empty() && !unit.isCuda;
  }
  if (hasErrors) {
    llvm::sys::fs::remove(marker);
    files.insert(marker);
  } else if (mentions(file, escaped(marker))) {
    if (std::string problem = writeWholeFile(marker, {}); !problem.empty())
      return problem;
  }
  std::string rule = escaped(target) + ":", empty;
  for (const std::string &each : files) {
    const std::string name = escaped(each);
    rule += " \\\n  " + name;
    empty += name + ":\n";
  }
  return writeWholeFile(file, rule + "\n" + empty);
}

} // namespace devicetidy::driver
