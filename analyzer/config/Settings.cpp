#include "analyzer/config/Settings.h"

#include "analyzer/config/CheckGlobs.h"
#include "checks/CheckRegistry.h"

#include "llvm/ADT/STLExtras.h"

namespace devicetidy::config {
namespace {

std::string joined(const std::vector<Sourced> &lists, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i)
    text += (text.empty() ? "" : ",") + lists[i].text;
  return text;
}

std::set<std::string> selectedBy(const std::vector<Sourced> &lists, std::size_t count) {
  std::set<std::string> selected;
  std::string error; // the lists were checked where they were read
  selectChecks(joined(lists, count), selected, error);
  return selected;
}

} // namespace

Settings::Settings(Values values)
    : written(std::move(values)), enabled(selectedBy(written.checks, written.checks.size())),
      errors(selectedBy(written.warningsAsErrors, written.warningsAsErrors.size())),
      headers(written.headerFilter.text), excludedHeaders(written.excludeHeaderFilter.text) {
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
  const bool isEnabledNow = isEnabled(check);
  std::size_t count = written.checks.size();
  while (count > 1 && (selectedBy(written.checks, count - 1).count(check) != 0) == isEnabledNow)
    --count;
  return count ? written.checks[count - 1].origin : "default";
}

} // namespace devicetidy::config
