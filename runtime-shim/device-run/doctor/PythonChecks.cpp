#include "doctor/Checks.h"

#include <fmt/format.h>

#include <regex>

namespace devicerun::doctor {
namespace {

/// " for Python 3.11" of /home/me/venv/lib/python3.11/site-packages; "" where the path does not say.
std::string pythonOf(const std::string &folder) {
  static const std::regex release("/python(3\\.[0-9]+)/");
  std::smatch found;
  return std::regex_search(folder, found, release) ? " for Python " + found[1].str() : "";
}

/// "; with accelerate 1.15.0, peft 0.21.2": the other packages of the folder.
std::string companionsIn(const std::string &folder, const Machine &machine) {
  std::string list;
  for (const Package &package : machine.packages)
    if (package.folder == folder && package.name != "torch" && package.name.rfind("nvidia_", 0) != 0)
      list += fmt::format("{} {} {}", list.empty() ? "; with" : ",", package.name, package.version.text);
  return list;
}

} // namespace

void checkPython(const Machine &machine, Diagnosis &diagnosis) {
  static const std::regex package("(.*)/torch/lib");
  std::smatch found;
  for (const LibTorch &torch : machine.torches)
    if (std::regex_match(torch.folder, found, package))
      diagnosis.ok("python", "python-torch",
                   fmt::format("PyTorch {}{}, a build for {}, in {}{}",
                               torch.version ? torch.version->text : "of unknown version",
                               pythonOf(torch.folder), torch.withCuda ? "CUDA" : "the CPU", found[1].str(),
                               companionsIn(found[1], machine)));
}

} // namespace devicerun::doctor
