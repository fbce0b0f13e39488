// Which LibTorch, NCCL and Python packages are here. Only NCCL's version function is called.
#include "doctor/Machine.h"

#include "base/ElfNeeded.h"
#include "base/RunError.h"
#include "base/Text.h"
#include "base/VirtualCuda.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include <dlfcn.h>
#include <glob.h>

namespace devicerun::doctor {
namespace {

namespace fs = std::filesystem;

bool startsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

std::vector<std::string> linesOf(const fs::path &path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    lines.push_back(line);
  return lines;
}

std::vector<std::string> matching(const std::string &pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return paths;
}

/// The text between the first quotes of a line.
std::string quoted(const std::string &line) {
  std::size_t begin = line.find_first_of("'\"");
  std::size_t end = begin == std::string::npos ? begin : line.find(line[begin], begin + 1);
  return end == std::string::npos ? "" : line.substr(begin + 1, end - begin - 1);
}

/// "2.6.0+cu124" says which CUDA it was built for.
std::optional<Version> cudaInVersion(const std::string &text) {
  std::size_t plus = text.find("+cu");
  if (plus == std::string::npos || text.size() < plus + 6)
    return std::nullopt;
  return parseVersion(text.substr(plus + 3, 2) + "." + text.substr(plus + 5));
}

void readVersion(LibTorch &torch) {
  const fs::path folder = torch.folder, prefix = folder.parent_path();
  // A wheel: torch/version.py beside torch/lib.
  for (const std::string &line : linesOf(prefix / "version.py")) {
    if (startsWith(line, "__version__"))
      torch.version = parseVersion(quoted(line));
    if (startsWith(line, "cuda"))
      torch.cuda = parseVersion(quoted(line));
  }
  // The archive from pytorch.org.
  for (const std::string &line : linesOf(prefix / "build-version"))
    if (!torch.version)
      torch.version = parseVersion(line);
  const bool system = startsWith(folder.string(), "/usr/lib");
  const fs::path headers = system ? "/usr/include" : prefix / "include";
  std::string numbers;
  for (const std::string &line : linesOf(headers / "torch/csrc/api/include/torch/version.h"))
    for (std::string_view part : {"MAJOR ", "MINOR ", "PATCH "})
      if (const std::string start = "#define TORCH_VERSION_" + std::string(part); startsWith(line, start))
        numbers += (numbers.empty() ? "" : ".") + line.substr(start.size());
  if (!torch.version)
    torch.version = parseVersion(numbers);
  // Only the library: libtorch_cpu.so.1.13
  std::error_code error;
  const std::string real = fs::canonical(folder / "libtorch_cpu.so", error).filename();
  if (std::size_t at = real.find(".so."); !torch.version && at != std::string::npos)
    torch.version = parseVersion(real.substr(at + 4));
}

/// libc10_cuda.so needs "libcudart.so.12", or "libcudart-1b184ad8.so.11.0" in some archives.
void readCuda(LibTorch &torch) {
  std::error_code error;
  torch.withCuda = fs::exists(fs::path(torch.folder) / "libtorch_cuda.so", error);
  if (!torch.withCuda)
    return;
  if (!torch.cuda && torch.version)
    torch.cuda = cudaInVersion(torch.version->text);
  for (const char *library : {"libc10_cuda.so", "libtorch_cuda.so"})
    if (std::optional<ElfFile> elf = readElf(fs::path(torch.folder) / library))
      for (const std::string &name : elf->needed)
        if (std::size_t at = name.find(".so."); startsWith(name, "libcudart") && at != std::string::npos)
          if (!torch.cuda)
            torch.cuda = parseVersion(name.substr(at + 4));
}

std::vector<std::string> foldersOf(const std::string &list) {
  std::vector<std::string> folders;
  for (const std::string &folder : split(list, ':'))
    if (!folder.empty())
      folders.push_back(folder);
  return folders;
}

std::string variableOf(const Environment &environment, const char *name) {
  auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

/// `python3` of PATH, without running it; a pyenv shim leads nowhere and is left to PYENV_ROOT.
std::string pythonPrefix(const Environment &environment) {
  std::error_code error;
  for (const std::string &folder : foldersOf(variableOf(environment, "PATH"))) {
    fs::path real = fs::canonical(fs::path(folder) / "python3", error);
    if (!error)
      return real.parent_path().parent_path();
  }
  return "";
}

std::string normalised(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
    return c == '-' || c == '.' ? '_' : static_cast<char>(std::tolower(c));
  });
  return name;
}

} // namespace

std::vector<std::string> sitePackagesFolders(const Environment &environment) {
  std::vector<std::string> patterns;
  auto below = [&](const std::string &prefix) {
    if (!prefix.empty())
      for (const char *part : {"/lib/python3*/site-packages", "/lib/python3*/dist-packages"})
        patterns.push_back(prefix + part);
  };
  for (const std::string &folder : foldersOf(variableOf(environment, "PYTHONPATH")))
    patterns.push_back(folder);
  below(variableOf(environment, "VIRTUAL_ENV"));
  below(variableOf(environment, "CONDA_PREFIX"));
  below(pythonPrefix(environment));
  const std::string home = variableOf(environment, "HOME"), pyenv = variableOf(environment, "PYENV_ROOT");
  below(home.empty() ? "" : home + "/.local");
  below(pyenv.empty() ? (home.empty() ? "" : home + "/.pyenv/versions/*") : pyenv + "/versions/*");
  for (const char *prefix : {"/usr/local", "/usr", "/opt/conda"})
    below(prefix);
  std::vector<std::string> folders;
  std::set<std::string> seen;
  std::error_code error;
  for (const std::string &pattern : patterns)
    for (const std::string &folder : matching(pattern))
      if (fs::is_directory(folder, error) && seen.insert(fs::canonical(folder, error)).second)
        folders.push_back(folder);
  return folders;
}

std::vector<Package> findPackages(const std::vector<std::string> &folders) {
  static const std::set<std::string> wanted = {"accelerate", "deepspeed", "peft", "torch", "transformers"};
  // By name; a folder lists its entries in no order. Of two with one name the earlier folder's comes first.
  std::multimap<std::string, Package> byName;
  std::error_code error;
  for (const std::string &folder : folders)
    for (const fs::directory_entry &entry : fs::directory_iterator(folder, error)) {
      // NAME-VERSION.dist-info, or .egg-info of older installers.
      const std::string file = entry.path().filename();
      const std::string kind = entry.path().extension();
      std::size_t dash = file.find('-');
      if ((kind != ".dist-info" && kind != ".egg-info") || dash == std::string::npos)
        continue;
      std::string name = normalised(file.substr(0, dash));
      std::optional<Version> version =
          parseVersion(file.substr(dash + 1, file.size() - dash - 1 - kind.size()));
      if (version && (wanted.count(name) || startsWith(name, "nvidia_nccl_cu")))
        byName.emplace(name, Package{name, *version, folder});
    }
  std::vector<Package> packages;
  packages.reserve(byName.size());
  for (auto &[name, package] : byName)
    packages.push_back(std::move(package));
  return packages;
}

std::vector<LibTorch> findLibTorch(const Environment &environment, const std::string &program,
                                   const std::vector<std::string> &sitePackages) {
  std::vector<std::string> folders;
  if (!program.empty()) {
    if (std::optional<ElfFile> elf = readElf(program))
      for (const Library &library : librariesOf(program, *elf))
        if (startsWith(library.name, "libtorch_cpu.so") && !library.path.empty())
          folders.push_back(fs::path(library.path).parent_path());
  } else {
    for (const std::string &folder : foldersOf(variableOf(environment, "LD_LIBRARY_PATH")))
      folders.push_back(folder);
    if (std::string root = variableOf(environment, "TORCH_ROOT"); !root.empty())
      folders.push_back(root + "/lib");
    for (const std::string &packages : sitePackages)
      folders.push_back(packages + "/torch/lib");
    for (const char *folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                               "/usr/local/lib", "/usr/local/libtorch/lib", "/opt/libtorch/lib"})
      folders.emplace_back(folder);
  }
  std::vector<LibTorch> all;
  std::set<std::string> seen;
  for (const std::string &folder : folders) {
    std::error_code error;
    if (matching(folder + "/libtorch_cpu.so*").empty() || !seen.insert(fs::canonical(folder, error)).second)
      continue;
    LibTorch torch;
    torch.folder = folder;
    readVersion(torch);
    readCuda(torch);
    all.push_back(std::move(torch));
  }
  return all;
}

std::optional<Version> findNccl() {
  void *library = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL);
  if (!library)
    return std::nullopt;
  std::optional<Version> version;
  int code = 0;
  if (auto *ask = reinterpret_cast<int (*)(int *)>(dlsym(library, "ncclGetVersion"));
      ask && ask(&code) == 0) {
    // nccl.h, NCCL_VERSION: 21003 is 2.10.3, and before 2.9 2807 was 2.8.7.
    const int scale = code < 10000 ? 1000 : 10000;
    version = parseVersion(std::to_string(code / scale) + "." + std::to_string(code % scale / 100) + "." +
                           std::to_string(code % 100));
  }
  dlclose(library);
  return version;
}

std::vector<VirtualGpuBuild> findVirtualGpuBuilds(const Environment &environment) {
  // native-2.13.cpython-311-x86_64-linux-gnu.so
  static const std::regex name(R"(native-([0-9.]+)\.cpython-([0-9])([0-9]+)-.*)");
  std::vector<VirtualGpuBuild> builds;
  try {
    const fs::path library = findVirtualCuda(environment, fs::read_symlink("/proc/self/exe"));
    const std::string folder = library.parent_path() / "virtual_cuda_python";
    for (const std::string &path : matching(folder + "/native-*.so")) {
      const std::string file = fs::path(path).filename();
      std::smatch found;
      if (std::regex_match(file, found, name))
        builds.push_back({found[1], found[2].str() + "." + found[3].str()});
    }
  } catch (const RunError &) { // there are no virtual GPUs here
  }
  return builds;
}

} // namespace devicerun::doctor
