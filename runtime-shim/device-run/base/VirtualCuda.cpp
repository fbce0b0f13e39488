#include "base/VirtualCuda.h"

#include "base/RunError.h"

#include <fmt/format.h>

#include <filesystem>

namespace devicerun {
namespace {

namespace fs = std::filesystem;

constexpr const char *kLibrary = "libvirtual_cuda.so";

// The loader splits LD_PRELOAD at blanks and colons and has no way to quote them.
std::string checkedPath(const fs::path &path) {
  std::string text = fs::absolute(path).lexically_normal();
  if (text.find_first_of(" :\t\n") != std::string::npos)
    throw RunError(ExitUsage,
                   fmt::format("cannot preload {}: LD_PRELOAD takes no path with blanks or colons; "
                               "copy it elsewhere and set DEVICE_TIDY_VIRTUAL_CUDA to the copy",
                               text));
  return text;
}

} // namespace

std::string findVirtualCuda(const Environment &environment, const std::string &executable) {
  std::error_code error;
  auto named = environment.find("DEVICE_TIDY_VIRTUAL_CUDA");
  if (named != environment.end() && !named->second.empty()) {
    if (!fs::is_regular_file(named->second, error))
      throw RunError(ExitUsage,
                     fmt::format("DEVICE_TIDY_VIRTUAL_CUDA names {}, which is not a file; set it to "
                                 "the path of {}",
                                 named->second, kLibrary));
    return checkedPath(named->second);
  }
  const fs::path folder = fs::path(executable).parent_path();
  std::string looked;
  for (const char *place :
       {".", "../lib", "../lib64", "../lib/x86_64-linux-gnu", "../lib/aarch64-linux-gnu", "../virtual-cuda",
        "../runtime-shim/virtual-cuda", "../../runtime-shim/virtual-cuda"}) {
    fs::path candidate = (folder / place / kLibrary).lexically_normal();
    if (fs::is_regular_file(candidate, error))
      return checkedPath(candidate);
    looked += fmt::format("\n  {}", candidate.string());
  }
  throw RunError(
      ExitUsage,
      fmt::format("virtual GPUs and --explain need {}, which is in none of these places:{}\nbuild the target "
                  "virtual_cuda, or set DEVICE_TIDY_VIRTUAL_CUDA to its path",
                  kLibrary, looked));
}

} // namespace devicerun
