#include "analyzer/config/CheckGlobs.h"

#include "analyzer/config/Suggest.h"
#include "analyzer/report/finding/Glob.h"
#include "checks/CheckRegistry.h"

#include "llvm/ADT/STLExtras.h"
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

struct CheckGlob {
  StringRef pattern;
  bool removes = false;

  bool matches(const std::string &check) const {
    return globMatches(std::string_view(pattern.data(), pattern.size()), check);
  }
};

/// Points into `globs`.
llvm::SmallVector<CheckGlob, 8> splitGlobs(StringRef globs) {
  llvm::SmallVector<StringRef, 8> parts;
  llvm::SplitString(globs, parts, ",\n");
  llvm::SmallVector<CheckGlob, 8> split;
  for (StringRef glob : parts) {
    glob = glob.trim();
    const bool removes = glob.consume_front("-");
    if (removes || !glob.empty())
      split.push_back({glob, removes});
  }
  return split;
}

} // namespace

bool selectChecks(const std::string &globs, std::set<std::string> &selected, std::string &error) {
  const std::vector<std::string> names = checkNames();
  bool isFirst = true;
  for (const CheckGlob &glob : splitGlobs(globs)) {
    if (isFirst && glob.removes)
      selected.insert(names.begin(), names.end());
    isFirst = false;
    bool matched = false;
    for (const std::string &name : names) {
      if (!glob.matches(name))
        continue;
      matched = true;
      if (glob.removes)
        selected.erase(name);
      else
        selected.insert(name);
    }
    if (!matched) {
      const std::string hint = suggestion(glob.pattern, names);
      error = "no check matches '" + glob.pattern.str() + "'" +
              (hint.empty() ? "; --list-checks lists them" : hint);
      return false;
    }
  }
  return true;
}

bool speakOf(const std::string &globs, const std::string &check) {
  return llvm::any_of(splitGlobs(globs), [&check](const CheckGlob &glob) { return glob.matches(check); });
}

} // namespace devicetidy::config
