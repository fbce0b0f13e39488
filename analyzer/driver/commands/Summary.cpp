#include "analyzer/driver/commands/Summary.h"

#include "analyzer/driver/input/TorchHeaders.h"
#include "analyzer/report/source/Source.h"

#include "llvm/ADT/STLExtras.h"

#include <fmt/format.h>

#include <set>

namespace devicetidy::driver {
namespace {

std::string counted(std::size_t count, const std::string &noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// Clang's words for a header that it did not find, where that is one of LibTorch's.
bool missesTorch(const Failure &failure) {
  const auto [before, rest] = llvm::StringRef(failure.reason).split('\'');
  const auto [header, after] = rest.split('\'');
  return isTorchHeader(header) && after.starts_with(" file not found");
}

constexpr std::string_view WhereTorchIs =
    "  LibTorch's headers are in none of the include folders. With CMake, configure the project with\n"
    "    -DCMAKE_PREFIX_PATH=DIR\n"
    "  where DIR is the folder libtorch from the zip, or for the pip wheel what this prints:\n"
    "    python3 -c 'import torch; print(torch.utils.cmake_prefix_path)'\n"
    "  Without a compile database, pass -- -IDIR/include -IDIR/include/torch/csrc/api/include, where DIR is "
    "that\n"
    "  folder, or torch in site-packages.\n";

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
  if (llvm::any_of(failures, missesTorch))
    text += WhereTorchIs;
  return text;
}

std::string describeResult(const std::vector<Diagnostic> &diagnostics, std::size_t unitCount,
                           std::size_t failureCount) {
  std::set<Name> files;
  for (const Diagnostic &diagnostic : diagnostics)
    files.insert(diagnostic.where.file);
  std::string units = counted(unitCount, "translation unit") + " analysed";
  if (failureCount)
    units +=
        unitCount == 1 ? std::string(", with errors") : fmt::format(", {} of them with errors", failureCount);
  if (diagnostics.empty())
    return "no findings; " + units;
  return counted(diagnostics.size(), "finding") + " in " + counted(files.size(), "file") + "; " + units;
}

} // namespace devicetidy::driver
