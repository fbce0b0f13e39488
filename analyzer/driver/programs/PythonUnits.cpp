#include "analyzer/driver/programs/PythonUnits.h"

#include "analyzer/driver/support/Paths.h"
#include "analyzer/facts/Language.h"
#include "analyzer/python/Lower.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace devicetidy::driver {
namespace {

// Folders whose name begins with a dot hold environments and caches.
void addFolder(const std::string &folder, std::vector<std::string> &files) {
  std::error_code error;
  for (llvm::sys::fs::recursive_directory_iterator at(folder, error), end; at != end && !error;
       at.increment(error)) {
    const llvm::StringRef name = llvm::sys::path::filename(at->path());
    if (name.starts_with(".") || name == "__pycache__" || name == "node_modules" || name == "site-packages")
      at.no_push();
    else if (isPython(name.str()) && llvm::sys::fs::is_regular_file(at->path()))
      files.push_back(absolutePath(at->path()));
  }
}

} // namespace

bool namesPython(const Options &options) {
  return !options.files.empty() && llvm::all_of(options.files, [](const std::string &file) {
    return isPython(file) || llvm::sys::fs::is_directory(file);
  });
}

bool hasPython(const Options &options) { return llvm::any_of(options.files, isPython); }

bool readPython(const Options &options, PythonUnits &read, std::string &error) {
  python::Request request;
  request.interpreter = options.python;
  const bool isAlone = namesPython(options);
  for (const std::string &file : options.files) {
    if (!isAlone && !isPython(file))
      continue;
    if (llvm::sys::fs::is_directory(file)) {
      addFolder(file, request.files);
      read.roots.push_back(absolutePath(file));
    } else if (!llvm::sys::fs::exists(file)) {
      error = "no such file: " + file;
      return false;
    } else {
      request.files.push_back(absolutePath(file));
    }
  }
  llvm::sort(request.files);
  request.files.erase(llvm::unique(request.files), request.files.end());
  if (request.files.empty()) {
    error = "no Python files in " + options.files.front() + "; name C++ files one by one, or leave them out";
    return false;
  }
  read.asked = request.files.size();
  if (read.roots.empty())
    read.roots.push_back(absolutePath("."));
  return python::lowerFiles(request, read.units, error);
}

} // namespace devicetidy::driver
