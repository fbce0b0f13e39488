#include "analyzer/driver/CheckGlobs.h"

#include "analyzer/driver/Suggest.h"
#include "checks/CheckRegistry.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace devicetidy::driver {
namespace {

using llvm::StringRef;

/// Does `text` match `glob`, in which `*` stands for any characters?
bool matches(StringRef glob, StringRef text) {
  const auto [head, tail] = glob.split('*');
  if (!glob.contains('*'))
    return glob == text;
  if (!text.consume_front(head))
    return false;
  for (std::size_t skipped = 0; skipped <= text.size(); ++skipped)
    if (matches(tail, text.drop_front(skipped)))
      return true;
  return false;
}

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
  StringRef(globs).split(parts, ',', -1, /*KeepEmpty=*/false);
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
      if (!matches(glob, name))
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

} // namespace devicetidy::driver
