#include "analyzer/driver/commands/Documentation.h"

#include "DeviceTidyConfig.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace devicetidy::driver {

std::string documentation() {
  static constexpr llvm::StringRef address = DEVICE_TIDY_DOCUMENTATION_URL;
  if (!address.empty())
    return address.rtrim('/').str();
  static int anchor; // in this program, wherever it is
  llvm::SmallString<256> installed(llvm::sys::fs::getMainExecutable(nullptr, &anchor));
  llvm::sys::path::remove_filename(installed);
  llvm::sys::path::append(installed, DEVICE_TIDY_INSTALLED_DOCS);
  llvm::sys::path::remove_dots(installed, /*remove_dot_dot=*/true);
  for (const std::string &directory : {installed.str().str(), std::string(DEVICE_TIDY_DOCS)})
    if (llvm::sys::fs::is_directory(directory + "/checks"))
      return directory;
  return {};
}

} // namespace devicetidy::driver
