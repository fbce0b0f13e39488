#include "launch/VirtualGpus.h"

#include "base/ElfNeeded.h"
#include "base/RunError.h"
#include "base/Text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>

namespace devicerun {
namespace {

bool startsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

/// libasan.so.8, /usr/lib/libtsan.so.2, libclang_rt.asan-x86_64.so
bool isSanitizer(const std::string &path) {
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  for (std::string_view start :
       {"libasan.", "libhwasan.", "liblsan.", "libtsan.", "libubsan.", "libclang_rt.asan",
        "libclang_rt.hwasan", "libclang_rt.tsan", "libclang_rt.ubsan"})
    if (startsWith(name, start))
      return true;
  return false;
}

} // namespace

void checkNotRealCuda(const std::string &program) {
  std::optional<ElfFile> elf = readElf(program);
  if (!elf)
    return;
  std::vector<Library> libraries = librariesOf(program, *elf);
  for (const std::string &name : elf->needed) // where the loader could not be asked
    libraries.push_back({name, ""});
  // libc10_cuda alone may be the look-alike that belongs to the virtual GPUs; the real one needs libcudart.
  bool runtime = std::any_of(libraries.begin(), libraries.end(),
                             [](const Library &library) { return startsWith(library.name, "libcudart"); });
  for (const Library &library : libraries)
    if (startsWith(library.name, "libtorch_cuda") || (runtime && startsWith(library.name, "libc10_cuda")))
      throw RunError(
          ExitNotExecutable,
          fmt::format("cannot run {} on virtual GPUs: it is linked with a CUDA build of LibTorch ({}); "
                      "link it with a CPU build, or leave out --virtual-gpus",
                      program, library.path.empty() ? library.name : library.path));
}

int visibleVirtualGpus(const std::string &list, int there) {
  std::set<std::string> seen;
  for (const std::string &entry : split(list, ',')) {
    std::optional<std::int64_t> index = parseInteger(entry);
    const bool uuid = startsWith(entry, "GPU-") || startsWith(entry, "MIG-");
    if (!uuid && (!index || *index < 0 || *index >= there))
      break;
    if (!seen.insert(uuid ? entry : std::to_string(*index)).second)
      return 0; // a list with repetitions shows no GPU at all
  }
  return std::min(there, static_cast<int>(seen.size()));
}

std::string sanitizerOf(const std::string &program) {
  std::optional<ElfFile> elf = readElf(program);
  if (!elf || std::none_of(elf->needed.begin(), elf->needed.end(), isSanitizer))
    return "";
  for (const Library &library : librariesOf(program, *elf))
    if (isSanitizer(library.name))
      return library.path;
  return "";
}

std::string preloadList(const std::string &library, const std::string &sanitizer,
                        const std::string &previous) {
  std::vector<std::string> first, last;
  if (!sanitizer.empty())
    first.push_back(sanitizer);
  std::string separated = previous;
  std::replace(separated.begin(), separated.end(), ' ', ':');
  for (const std::string &entry : split(separated, ':'))
    if (!entry.empty() && entry != sanitizer)
      (isSanitizer(entry) ? first : last).push_back(entry);
  first.push_back(library);
  first.insert(first.end(), last.begin(), last.end());
  return fmt::format("{}", fmt::join(first, ":"));
}

void setVirtualGpuVariables(Environment &environment, const Options &options, const std::string &preload,
                            const std::string &records) {
  environment["LD_PRELOAD"] = preload;
  if (options.virtualGpus) {
    environment["VIRTUAL_GPUS"] = std::to_string(*options.virtualGpus);
    // A list that hides all GPUs is how machines without any are set up; virtual ones were asked for by
    // number.
    auto list = environment.find("CUDA_VISIBLE_DEVICES");
    if (list != environment.end() && visibleVirtualGpus(list->second, *options.virtualGpus) == 0)
      environment.erase(list);
  }
  environment.erase("VIRTUAL_GPU_RECORDS_ONLY"); // of a device-run around this one
  if (options.explain)
    environment["VIRTUAL_GPU_RECORDS_ONLY"] = "1";
  environment["VIRTUAL_GPU_ERRORS"] = records;
  if (options.gpuMemory)
    environment["VIRTUAL_GPU_MEMORY"] = std::to_string(*options.gpuMemory);
  if (options.isolate)
    environment["VIRTUAL_GPU_ISOLATE"] = "1";
  if (!options.traceFile.empty())
    environment["VIRTUAL_GPU_TRACE"] = records;
  if (!options.findingsFile.empty())
    environment["VIRTUAL_GPU_REACHED"] = records;
}

} // namespace devicerun
