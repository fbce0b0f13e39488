#include "analyzer/driver/input/ProjectFiles.h"

#include "analyzer/driver/input/CudaHeaders.h"
#include "analyzer/driver/support/Paths.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

namespace devicetidy::driver {
namespace {

using llvm::StringRef;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

/// The source directory in the CMakeCache.txt of a build directory, or nothing.
std::string cmakeSourceDirectory(const std::string &buildDirectory) {
  auto cache = llvm::MemoryBuffer::getFile(buildDirectory + "/CMakeCache.txt");
  if (!cache)
    return {};
  for (llvm::line_iterator line(**cache); !line.is_at_end(); ++line) {
    StringRef text = *line;
    if (text.consume_front("CMAKE_HOME_DIRECTORY:INTERNAL="))
      return absolutePath(text);
  }
  return {};
}

/// The repository `directory` is in, or nothing. (.git is a file in worktrees and submodules.)
std::string gitTopLevel(StringRef directory) {
  for (; !directory.empty(); directory = path::parent_path(directory))
    if (fs::exists(directory + "/.git"))
      return directory.str();
  return {};
}

/// Headers of sources in src/ are usually in include/ next to it.
std::string withoutSourceFolder(StringRef directory) {
  static constexpr StringRef folders[] = {"src", "source", "sources", "lib", "app", "apps"};
  return (llvm::is_contained(folders, path::filename(directory)) ? path::parent_path(directory) : directory)
      .str();
}

bool isVendorName(StringRef name) {
  static constexpr StringRef names[] = {"third_party",   "third-party",   "thirdparty",     "3rdparty",
                                        "3rd_party",     "external",      "extern",         "vendor",
                                        "vendored",      "_deps",         "libtorch",       "node_modules",
                                        "site-packages", "dist-packages", "vcpkg_installed"};
  return llvm::is_contained(names, name);
}

/// Does `directory` hold the headers of LibTorch?
bool holdsTorch(const std::string &directory) {
  return fs::is_directory(directory + "/ATen") || fs::is_directory(directory + "/torch/csrc");
}

/// A library in one header, such as a parser of JSON, that was copied into the tree: large, and written
/// without LibTorch in mind. Tensors that its templates are given pass through as through any library.
bool isLibraryHeader(const std::string &file) {
  constexpr std::uint64_t large = 200'000;
  fs::file_status status;
  if (fs::status(file, status) || status.getSize() < large)
    return false;
  const auto content = llvm::MemoryBuffer::getFile(file, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  static constexpr StringRef names[] = {"torch", "ATen", "c10"};
  return content &&
         llvm::none_of(names, [&](StringRef name) { return (*content)->getBuffer().contains(name); });
}

bool isTorchFolder(StringRef name) {
  static constexpr StringRef names[] = {"ATen", "torch", "c10", "caffe2", "pybind11", "TH", "THC"};
  return llvm::is_contained(names, name);
}

} // namespace

ProjectFiles::ProjectFiles(const CommandSet &commands, const std::vector<std::string> &given) {
  for (const std::string &root : given)
    addRoot(absolutePath(root));
  if (given.empty() && !commands.databaseDirectory.empty())
    if (const std::string source = cmakeSourceDirectory(commands.databaseDirectory); !source.empty())
      addRoot(source);
  std::vector<std::string> files = commands.databaseFiles;
  for (const CompileCommand &command : commands.commands) {
    sources.insert(command.file);
    files.push_back(command.file);
  }
  if (given.empty())
    findRoots(files, commands.databaseDirectory);
  std::vector<std::string> system = commands.systemDirectories;
  system.push_back(cudaStandIns());
  for (const std::string &directory : system)
    if (llvm::any_of(roots,
                     [&](const std::string &root) { return directory != root && isUnder(directory, root); }))
      systemDirectories.push_back(directory);
}

void ProjectFiles::findRoots(const std::vector<std::string> &files, const std::string &databaseDirectory) {
  std::string shared;
  for (const std::string &file : files) {
    const std::string directory = path::parent_path(file).str();
    if (llvm::any_of(roots, [&](const std::string &root) { return isUnder(directory, root); }))
      continue;
    if (const std::string repository = gitTopLevel(directory); !repository.empty())
      addRoot(repository);
    else
      shared = shared.empty() ? directory : commonDirectory(shared, directory);
  }
  // Files from all over the machine share nothing that could be called a project.
  if (shared.size() <= 1)
    return;
  const bool isBelow = databaseDirectory.size() > 1 && isUnder(shared, databaseDirectory);
  addRoot(isBelow ? databaseDirectory : withoutSourceFolder(shared));
}

void ProjectFiles::addRoot(const std::string &directory) {
  if (!llvm::is_contained(roots, directory))
    roots.push_back(directory);
}

bool ProjectFiles::isProject(const std::string &file) const {
  return sources.count(file) || isOwnPlace(file);
}

bool ProjectFiles::isOwnPlace(const std::string &file) const {
  const std::string directory = path::parent_path(file).str();
  return once(directory, [&] { return judgeDirectory(directory); }) &&
         (sources.count(file) || once(file, [&] { return !isLibraryHeader(file); }));
}

bool ProjectFiles::once(const std::string &place, llvm::function_ref<bool()> judge) const {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (const auto found = known.find(place); found != known.end())
      return found->second;
  }
  const bool verdict = judge();
  std::lock_guard<std::mutex> lock(mutex);
  known.emplace(place, verdict);
  return verdict;
}

bool ProjectFiles::judgeDirectory(const std::string &directory) const {
  const auto root = llvm::find_if(roots, [&](const std::string &each) { return isUnder(directory, each); });
  if (root == roots.end())
    return false;
  for (const std::string &system : systemDirectories)
    if (isUnder(directory, system))
      return false;
  // From the directory up to the root: is any of them the top of a vendored tree?
  for (std::string each = directory; each != *root; each = path::parent_path(each).str())
    if (isVendorName(path::filename(each)) || holdsTorch(each))
      return false;
  if (!holdsTorch(*root))
    return true;
  // LibTorch is in the root itself, next to the user's code.
  const StringRef below = StringRef(directory).drop_front(root->size()).ltrim('/');
  return !isTorchFolder(below.split('/').first);
}

} // namespace devicetidy::driver
