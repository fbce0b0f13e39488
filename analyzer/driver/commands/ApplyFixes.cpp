#include "analyzer/driver/commands/ApplyFixes.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <map>

namespace devicetidy::driver {
namespace {

namespace fs = llvm::sys::fs;

/// Puts `text` in the place of the file `path`. Returns why that failed, or nothing.
std::string replaceFile(const llvm::SmallString<256> &path, const std::string &text) {
  fs::file_status status;
  if (std::error_code code = fs::status(path, status))
    return code.message();
  if (!fs::can_write(path))
    return "it is read-only";
  llvm::Expected<fs::TempFile> temporary = fs::TempFile::create(path + ".device-tidy-%%%%%%");
  if (!temporary)
    return llvm::toString(temporary.takeError());
  llvm::raw_fd_ostream stream(temporary->FD, /*shouldClose=*/false);
  stream << text;
  stream.flush();
  std::error_code code = stream.error();
  stream.clear_error();
  if (!code)
    code = fs::setPermissions(temporary->FD, status.permissions());
  if (!code) {
    llvm::Error error = temporary->keep(path);
    return error ? llvm::toString(std::move(error)) : std::string();
  }
  llvm::consumeError(temporary->discard());
  return code.message();
}

std::string applyToFile(Name file, const std::vector<Replacement> &changes, SourceCache &sources) {
  const std::string &path = file.str();
  const auto current = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!current)
    return "cannot read " + path + ": " + current.getError().message();
  const std::string_view analysed = sources.text(file);
  if ((*current)->getBuffer() != llvm::StringRef(analysed.data(), analysed.size()))
    return path + " changed while it was analysed; run device-tidy again";
  llvm::SmallString<256> real; // a symbolic link stays one
  if (std::error_code code = fs::real_path(path, real))
    return "cannot fix " + path + ": " + code.message();
  const std::string problem = replaceFile(real, withChanges(analysed, changes));
  return problem.empty() ? problem : "cannot fix " + path + ": " + problem;
}

} // namespace

AppliedFixes applyFixes(const std::vector<Replacement> &changes, SourceCache &sources) {
  std::map<Name, std::vector<Replacement>> perFile;
  for (const Replacement &change : changes)
    perFile[change.where.file].push_back(change);
  AppliedFixes result;
  for (const auto &[file, list] : perFile) {
    std::string problem = applyToFile(file, list, sources);
    if (problem.empty())
      ++result.files;
    else
      result.errors.push_back(std::move(problem));
  }
  return result;
}

} // namespace devicetidy::driver
