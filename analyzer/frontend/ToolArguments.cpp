#include "analyzer/frontend/ToolArguments.h"

#include "analyzer/frontend/SourceFiles.h"

#include "clang/Basic/Version.h"
#include "clang/Frontend/CompilerInstance.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include "DeviceTidyConfig.h"

#include <algorithm>

namespace devicetidy::frontend {

namespace {

std::string resourceDir() {
#ifdef DEVICE_TIDY_RESOURCE_DIR
  if (llvm::sys::fs::exists(DEVICE_TIDY_RESOURCE_DIR "/include"))
    return DEVICE_TIDY_RESOURCE_DIR;
#endif
  // Beside the clang library this program runs with: <prefix>/lib/libclang-cpp.so -> <prefix>/lib/clang/N.
  std::string library = llvm::sys::fs::getMainExecutable("", reinterpret_cast<void *>(&resourceDir));
  llvm::SmallString<256> path(llvm::sys::path::parent_path(library));
  llvm::sys::path::append(path, "..", "lib", "clang", std::to_string(CLANG_VERSION_MAJOR));
  return path.str().str();
}

} // namespace

std::vector<std::string> toolArguments(const std::vector<std::string> &arguments) {
  std::vector<std::string> result = arguments;
  bool hasResourceDir = false, hasSyntaxOnly = false;
  for (const std::string &argument : arguments) {
    hasResourceDir |= llvm::StringRef(argument).starts_with("-resource-dir");
    hasSyntaxOnly |= argument == "-fsyntax-only";
  }
  std::vector<std::string> added;
  if (!hasResourceDir)
    added.push_back("-resource-dir=" + resourceDir());
  if (!hasSyntaxOnly)
    added.push_back("-fsyntax-only");
  added.push_back("-w");
  result.insert(result.empty() ? result.end() : result.begin() + 1, added.begin(), added.end());
  // Last, for it undoes -Werror=X of the command, and warnings that clang alone takes for errors.
  result.insert(std::find(result.begin(), result.end(), "--"), "-Wno-everything");
  return result;
}

std::vector<Name> sourceFiles(const clang::SourceManager &sources) {
  std::vector<Name> files;
  for (auto file = sources.fileinfo_begin(); file != sources.fileinfo_end(); ++file)
    files.push_back(Name(absolutePath(sources.getFileManager(), file->first.getName())));
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

} // namespace devicetidy::frontend
