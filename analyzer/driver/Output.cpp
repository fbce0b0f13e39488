#include "analyzer/driver/Output.h"

#include "analyzer/report/Source.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

#include <cstdlib>
#include <set>
#include <string_view>

namespace devicetidy::driver {
namespace {

std::string counted(std::size_t count, const std::string &noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// One that shows neither colours nor a line that is written again, as in Emacs.
bool isDumbTerminal() {
  const char *terminal = std::getenv("TERM");
  return terminal && std::string_view(terminal) == "dumb";
}

} // namespace

void complain(const std::string &sentence) { llvm::errs() << "device-tidy: error: " << sentence << '\n'; }

void remark(const Options &options, const std::string &sentence) {
  if (!options.quiet)
    llvm::errs() << "device-tidy: " << sentence << '\n';
}

bool showsProgress(const Options &options) {
  return !options.quiet && !isDumbTerminal() && llvm::sys::Process::StandardErrIsDisplayed();
}

bool usesColour(const Options &options) {
  if (options.colour != Colour::Auto)
    return options.colour == Colour::Always && options.output.empty();
  const char *refusal = std::getenv("NO_COLOR");
  if ((refusal && *refusal) || isDumbTerminal())
    return false;
  return options.output.empty() && llvm::sys::Process::StandardOutIsDisplayed();
}

bool flushOutput() {
  llvm::outs().flush();
  const std::error_code code = llvm::outs().error();
  llvm::outs().clear_error(); // LLVM ends the program over one that nobody has seen to
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

std::string describeFailures(const std::vector<Failure> &failures, std::size_t unitCount) {
  if (failures.empty())
    return {};
  std::string text = fmt::format("device-tidy: {} of {} could not be parsed:\n", failures.size(),
                                 counted(unitCount, "translation unit"));
  for (const Failure &failure : failures)
    text += fmt::format("  {}{}\n    {}\n", failure.file,
                        failure.isTotal ? "" : " (its intact functions were analysed)",
                        printable(failure.reason));
  return text;
}

std::string describeResult(const std::vector<Diagnostic> &diagnostics, std::size_t unitCount,
                           std::size_t failureCount) {
  std::set<Name> files;
  for (const Diagnostic &diagnostic : diagnostics)
    files.insert(diagnostic.where.file);
  std::string units = counted(unitCount, "translation unit") + " analysed";
  if (failureCount)
    units += fmt::format(", {} of them with errors", failureCount);
  if (diagnostics.empty())
    return "no findings; " + units;
  return counted(diagnostics.size(), "finding") + " in " + counted(files.size(), "file") + "; " + units;
}

} // namespace devicetidy::driver
