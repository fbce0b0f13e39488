#include "analyzer/config/Settings.h"

#include "analyzer/config/CheckGlobs.h"
#include "checks/CheckRegistry.h"

#include "llvm/ADT/STLExtras.h"

namespace devicetidy::config {
namespace {

std::set<std::string> selectedBy(const std::vector<Sourced> &lists) {
  std::string globs;
  for (const Sourced &list : lists)
    globs += (globs.empty() ? "" : ",") + list.text;
  std::set<std::string> selected;
  std::string error; // the lists were checked where they were read
  selectChecks(globs, selected, error);
  return selected;
}

} // namespace

Settings::Settings(Values values)
    : written(std::move(values)), enabled(selectedBy(written.checks)),
      errors(selectedBy(written.warningsAsErrors)), headers(written.headerFilter.text),
      excludedHeaders(written.excludeHeaderFilter.text) {
  std::string error;
  for (const CheckInfo &info : checkInfos()) {
    const std::string check(info.name), own = option(check, "Level");
    levels[check] = parseLevel(own.empty() ? written.level.text : own, error).value_or(Level::Likely);
  }
  if (!written.torchVersion.text.empty())
    version = parseTorchVersion(written.torchVersion.text, error).value_or(TorchVersion());
}

Level Settings::levelOf(const std::string &check) const {
  const auto found = levels.find(check);
  return found == levels.end() ? Level::Latent : found->second;
}

Level Settings::leastSure() const {
  Level least = Level::Definite;
  for (const std::string &check : enabled)
    least = std::max(least, levelOf(check));
  return least;
}

bool Settings::showsHeader(llvm::StringRef file) const {
  return !written.headerFilter.text.empty() && headers.match(file) &&
         (written.excludeHeaderFilter.text.empty() || !excludedHeaders.match(file));
}

std::string Settings::option(llvm::StringRef check, llvm::StringRef name) const {
  const std::string full = check.str() + "." + name.str();
  if (const auto found = written.checkOptions.find(full); found != written.checkOptions.end())
    return found->second.text;
  std::string error;
  const auto known = findCheckOption(full, error);
  return known ? std::string(known->option->value) : std::string();
}

std::string Settings::originOf(const std::string &check) const {
  for (const Sourced &list : llvm::reverse(written.checks))
    if (speakOf(list.text, check))
      return list.origin;
  return written.checks.empty() ? "default" : written.checks.front().origin;
}

} // namespace devicetidy::config
