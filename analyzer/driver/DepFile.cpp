#include "analyzer/driver/DepFile.h"

#include <algorithm>
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

} // namespace

std::string dependencyRules(const std::string &target, const std::vector<Unit> &units) {
  std::set<std::string> files;
  for (const Unit &unit : units) {
    files.insert(unit.mainFile.str());
    for (Name file : unit.files)
      files.insert(file.str());
    if (!unit.parseErrors.empty())
      files.insert(target + ".errors-to-mend");
  }
  std::string rule = escaped(target) + ":", empty;
  for (const std::string &file : files) {
    const std::string name = escaped(file);
    rule += " \\\n  " + name;
    empty += name + ":\n";
  }
  return rule + "\n" + empty;
}

} // namespace devicetidy::driver
