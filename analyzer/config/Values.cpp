#include "analyzer/config/Values.h"

#include "analyzer/config/Suggest.h"
#include "checks/CheckRegistry.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"

namespace devicetidy::config {

using llvm::StringRef;

std::string notOneOf(StringRef value, const std::vector<std::string> &known) {
  return "'" + value.str() + "' is not one of " + llvm::join(known, ", ") + suggestion(value, known);
}

std::optional<Level> parseLevel(StringRef text, std::string &error) {
  static const std::vector<std::string> names = {"definite", "likely", "latent"};
  const auto found = llvm::find(names, text);
  if (found != names.end())
    return static_cast<Level>(found - names.begin());
  error = notOneOf(text, names);
  return std::nullopt;
}

std::optional<TorchVersion> parseTorchVersion(StringRef text, std::string &error) {
  TorchVersion version;
  const auto [major, rest] = text.split('.');
  auto [minor, patch] = rest.split('.');
  // Device rules do not change within a minor version; "1.13.1+cpu" is how LibTorch writes its own.
  int ignored = 0;
  const bool isPatch = (patch.empty() && rest == minor) ||
                       (!patch.consumeInteger(10, ignored) && (patch.empty() || patch.starts_with("+")));
  if (!major.getAsInteger(10, version.major) && !minor.getAsInteger(10, version.minor) && isPatch &&
      version.major >= 1 && version.minor >= 0) {
    constexpr int newestMajor = 2;
    if (version.major <= newestMajor)
      return version;
    error = "the device rules of LibTorch " + text.str() + " are not known; those of 1.x and 2.x are";
    return std::nullopt;
  }
  error = "'" + text.str() + "' is not a version like 2.6";
  return std::nullopt;
}

std::string wrongRegex(StringRef text) {
  std::string wrong;
  if (text.empty() || llvm::Regex(text).isValid(wrong))
    return {};
  return "'" + text.str() + "' is not a valid regular expression: " + wrong;
}

std::optional<CheckOptionName> findCheckOption(StringRef name, std::string &error) {
  std::vector<std::string> known;
  for (const CheckInfo &info : checkInfos())
    for (const CheckOption &option : info.options) {
      known.push_back(std::string(info.name) + "." + std::string(option.name));
      if (name == known.back())
        return CheckOptionName{&info, &option};
    }
  const std::string hint = suggestion(name, known);
  error = "unknown check option '" + name.str() + "'" +
          (hint.empty() ? "; the names are like device-mixed-op.Level, see --dump-config" : hint);
  return std::nullopt;
}

std::string wrongOptionValue(const CheckOption &option, StringRef value) {
  std::string error;
  switch (option.kind) {
  case CheckOptionKind::Level:
    if (!value.empty())
      parseLevel(value, error);
    break;
  case CheckOptionKind::Flag:
    if (value != "true" && value != "false")
      error = notOneOf(value, {"true", "false"});
    break;
  case CheckOptionKind::Names:
    break;
  }
  return error;
}

std::vector<std::string> splitNames(StringRef text) {
  llvm::SmallVector<StringRef, 8> parts;
  text.split(parts, ';', -1, /*KeepEmpty=*/false);
  std::vector<std::string> names;
  for (StringRef part : parts)
    if (!part.trim().empty())
      names.push_back(part.trim().str());
  return names;
}

} // namespace devicetidy::config
