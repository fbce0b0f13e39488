#include "analyzer/driver/commands/Summary.h"

#include "analyzer/report/source/Source.h"

#include <fmt/format.h>

#include <set>

namespace devicetidy::driver {
namespace {

std::string counted(std::size_t count, const std::string &noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

} // namespace

std::string describeFailures(const std::vector<Failure> &failures, std::size_t unitCount) {
  if (failures.empty())
    return {};
  std::string text = fmt::format("device-tidy: {} of {} could not be parsed:\n", failures.size(),
                                 counted(unitCount, "translation unit"));
  for (const Failure &failure : failures)
    text += fmt::format("  {}{}\n    {}\n", failure.file,
                        failure.isTotal ? "" : " (what could be parsed of it was analysed)",
                        printable(failure.reason));
  return text;
}

std::string describeResult(const std::vector<Diagnostic> &diagnostics, std::size_t unitCount,
                           std::size_t failureCount) {
  std::set<Name> files;
  for (const Diagnostic &diagnostic : diagnostics)
    files.insert(diagnostic.where.file);
  std::string units = counted(unitCount, "translation unit") + " analysed";
  if (failureCount)
    units += fmt::format(", {} of them with errors", failureCount);
  if (diagnostics.empty())
    return "no findings; " + units;
  return counted(diagnostics.size(), "finding") + " in " + counted(files.size(), "file") + "; " + units;
}

} // namespace devicetidy::driver
