#include "analyzer/driver/support/WholeFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

namespace devicetidy::driver {
namespace {

llvm::Error put(llvm::raw_fd_ostream &stream, const std::string &text) {
  stream << text;
  stream.flush();
  const std::error_code code = stream.error();
  stream.clear_error(); // a stream that still has one ends the program
  return llvm::errorCodeToError(code);
}

llvm::Error putDirectly(const std::string &file, const std::string &text) {
  std::error_code code;
  llvm::raw_fd_ostream stream(file, code, llvm::sys::fs::OF_None);
  return code ? llvm::errorCodeToError(code) : put(stream, text);
}

llvm::Error replace(const std::string &file, const std::string &text) {
  llvm::Expected<llvm::sys::fs::TempFile> temporary = llvm::sys::fs::TempFile::create(file + ".%%%%%%%%.tmp");
  if (!temporary)
    return temporary.takeError();
  {
    llvm::raw_fd_ostream stream(temporary->FD, /*shouldClose=*/false);
    if (llvm::Error problem = put(stream, text))
      return llvm::joinErrors(std::move(problem), temporary->discard());
  }
  return temporary->keep(file);
}

} // namespace

std::string writeWholeFile(const std::string &file, const std::string &text) {
  llvm::sys::fs::file_status status;
  const bool isSpecial = !llvm::sys::fs::status(file, status) && !llvm::sys::fs::is_regular_file(status);
  llvm::Error problem = isSpecial ? putDirectly(file, text) : replace(file, text);
  return problem ? "cannot write " + file + ": " + llvm::toString(std::move(problem)) : std::string();
}

} // namespace devicetidy::driver
