#include "analyzer/config/CheckGlobs.h"

#include "analyzer/config/Suggest.h"
#include "analyzer/report/Glob.h"
#include "checks/CheckRegistry.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

namespace devicetidy::config {
namespace {

using llvm::StringRef;

std::vector<std::string> checkNames() {
  std::vector<std::string> names;
  for (const CheckInfo &info : checkInfos())
    names.emplace_back(info.name);
  return names;
}

} // namespace

bool selectChecks(const std::string &globs, std::set<std::string> &selected, std::string &error) {
  const std::vector<std::string> names = checkNames();
  llvm::SmallVector<StringRef, 8> parts;
  llvm::SplitString(globs, parts, ",\n");
  bool isFirst = true;
  for (StringRef glob : parts) {
    glob = glob.trim();
    if (glob.empty())
      continue;
    const bool removes = glob.consume_front("-");
    if (isFirst && removes)
      selected.insert(names.begin(), names.end());
    isFirst = false;
    bool matched = false;
    for (const std::string &name : names) {
      if (!globMatches(std::string_view(glob.data(), glob.size()), name))
        continue;
      matched = true;
      if (removes)
        selected.erase(name);
      else
        selected.insert(name);
    }
    if (!matched) {
      const std::string hint = suggestion(glob, names);
      error = "no check matches '" + glob.str() + "'" + (hint.empty() ? "; --list-checks lists them" : hint);
      return false;
    }
  }
  return true;
}

} // namespace devicetidy::config
