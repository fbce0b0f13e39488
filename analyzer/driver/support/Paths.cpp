#include "analyzer/driver/support/Paths.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace devicetidy::driver {

std::string absolutePath(llvm::StringRef path, llvm::StringRef directory) {
  llvm::SmallString<256> result;
  if (!llvm::sys::path::is_absolute(path))
    result = directory;
  llvm::sys::path::append(result, path);
  llvm::sys::fs::make_absolute(result);
  llvm::sys::path::remove_dots(result, /*remove_dot_dot=*/true);
  return result.str().str();
}

bool isUnder(llvm::StringRef path, llvm::StringRef root) {
  if (root == "/" || path == root)
    return true;
  return path.size() > root.size() && path.starts_with(root) && path[root.size()] == '/';
}

std::string commonDirectory(llvm::StringRef first, llvm::StringRef second) {
  while (!first.empty() && !isUnder(second, first))
    first = llvm::sys::path::parent_path(first);
  return first.str();
}

} // namespace devicetidy::driver
