#include "doctor/Checks.h"

#include <fmt/format.h>

#include <regex>

namespace devicerun::doctor {
namespace {

/// "3.11" of /home/me/venv/lib/python3.11/site-packages; "" where the path does not say.
std::string pythonOf(const std::string &folder) {
  static const std::regex release("/python(3\\.[0-9]+)/");
  std::smatch found;
  return std::regex_search(folder, found, release) ? found[1].str() : "";
}

std::string forPython(const std::string &python) { return python.empty() ? "" : " for Python " + python; }

/// "PyTorch 2.13 for Python 3.11, PyTorch 1.13 for Python 3.11"
std::string listOf(const std::vector<VirtualGpuBuild> &builds) {
  std::string list;
  for (const VirtualGpuBuild &build : builds)
    list += fmt::format("{}PyTorch {}{}", list.empty() ? "" : ", ", build.torch, forPython(build.python));
  return list;
}

/// Virtual GPUs are built for one release of PyTorch and one of Python.
void checkVirtualGpus(const LibTorch &torch, const std::string &package, const Machine &machine,
                      Diagnosis &diagnosis) {
  if (torch.withCuda || !torch.version)
    return;
  const std::string release = fmt::format("{}.{}", torch.version->major, torch.version->minor);
  const std::string python = pythonOf(package);
  for (const VirtualGpuBuild &build : machine.virtualGpuBuilds)
    if (build.torch == release && (python.empty() || build.python == python))
      return diagnosis.ok("python", "python-virtual-gpus",
                          fmt::format("virtual GPUs are built for the PyTorch in {}", package));
  const std::string known = listOf(machine.virtualGpuBuilds);
  diagnosis.warn("python", "python-no-virtual-gpus",
                 fmt::format("virtual GPUs are not built for the PyTorch in {}{}", package,
                             known.empty() ? "" : ", but for " + known),
                 "to use them build a wheel with that Python, scripts/build-wheel.sh PYTHON, or for Debian's "
                 "PyTorch install device-tidy-virtual-gpu");
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
  for (const LibTorch &torch : machine.torches) {
    if (!std::regex_match(torch.folder, found, package))
      continue;
    diagnosis.ok("python", "python-torch",
                 fmt::format("PyTorch {}{}, a build for {}, in {}{}",
                             torch.version ? torch.version->text : "of unknown version",
                             forPython(pythonOf(torch.folder)), torch.withCuda ? "CUDA" : "the CPU",
                             found[1].str(), companionsIn(found[1], machine)));
    checkVirtualGpus(torch, found[1], machine, diagnosis);
  }
}

} // namespace devicerun::doctor
