#include "LibTorch.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <map>

namespace vcuda {
namespace {

struct Wanted {
  const char *name;
  std::string path;
};

int noteLibrary(dl_phdr_info *object, size_t, void *data) {
  auto &wanted = *static_cast<Wanted *>(data);
  const char *slash = std::strrchr(object->dlpi_name, '/');
  const char *name = slash ? slash + 1 : object->dlpi_name;
  if (std::strncmp(name, wanted.name, std::strlen(wanted.name)) != 0)
    return 0;
  wanted.path = object->dlpi_name;
  return 1;
}

} // namespace

std::string loadedLibrary(const char *name) {
  Wanted wanted{name, ""};
  dl_iterate_phdr(&noteLibrary, &wanted);
  return wanted.path;
}

void *symbolOfLibTorch(const char *symbol) {
  // Python loads LibTorch out of sight of dlsym(RTLD_NEXT).
  for (const char *name : {"libc10.so", "libtorch_cpu.so"}) {
    const std::string path = loadedLibrary(name);
    void *library = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
      continue;
    void *found = dlsym(library, symbol);
    dlclose(library); // what was loaded stays loaded
    if (found)
      return found;
  }
  return nullptr;
}

std::string versionOfLibTorch() {
  using Options = std::map<std::string, std::string>;
  auto options =
      reinterpret_cast<const Options &(*)()>(symbolOfLibTorch("_ZN6caffe215GetBuildOptionsB5cxx11Ev"));
  if (!options)
    return "";
  const auto version = options().find("TORCH_VERSION");
  return version == options().end() ? "" : version->second;
}

} // namespace vcuda
