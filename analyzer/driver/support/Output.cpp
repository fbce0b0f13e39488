#include "analyzer/driver/support/Output.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <string_view>

namespace devicetidy::driver {
namespace {

/// One that shows neither colours nor a line that is written again, as in Emacs.
bool isDumbTerminal() {
  const char *terminal = std::getenv("TERM");
  return terminal && std::string_view(terminal) == "dumb";
}

} // namespace

void complain(const std::string &sentence) { llvm::errs() << "device-tidy: error: " << sentence << '\n'; }

void remark(bool isQuiet, const std::string &sentence) {
  if (!isQuiet)
    llvm::errs() << "device-tidy: " << sentence << '\n';
}

bool showsProgress(bool isQuiet) {
  return !isQuiet && !isDumbTerminal() && llvm::sys::Process::StandardErrIsDisplayed();
}

bool usesColour(Colour colour, const std::string &file) {
  if (colour != Colour::Auto)
    return colour == Colour::Always && file.empty();
  const char *refusal = std::getenv("NO_COLOR");
  if ((refusal && *refusal) || isDumbTerminal())
    return false;
  return file.empty() && llvm::sys::Process::StandardOutIsDisplayed();
}

bool flushOutput() {
  llvm::outs().flush();
  const std::error_code code = llvm::outs().error();
  llvm::outs().clear_error(); // LLVM ends the program for an error that is not handled
  if (code)
    complain("cannot write to standard output: " + code.message());
  return !code;
}

bool writeOutput(const std::string &file, const std::string &text) {
  if (file == "-") {
    llvm::outs() << text;
    return flushOutput();
  }
  std::error_code code;
  llvm::raw_fd_ostream stream(file, code, llvm::sys::fs::OF_None);
  if (!code) {
    stream << text;
    stream.close();
    code = stream.error();
    stream.clear_error();
  }
  if (code)
    complain("cannot write " + file + ": " + code.message());
  return !code;
}

} // namespace devicetidy::driver
