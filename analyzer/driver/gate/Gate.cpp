#include "analyzer/driver/gate/Gate.h"

#include "analyzer/driver/gate/ChangedLines.h"
#include "analyzer/driver/support/Output.h"
#include "analyzer/driver/support/WholeFile.h"
#include "analyzer/report/diagnostic/ShownPlace.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <fmt/format.h>

namespace devicetidy::driver {
namespace {

namespace fs = llvm::sys::fs;

bool readBaseline(const std::string &name, std::optional<Baseline> &baseline, std::string &error) {
  const auto text = llvm::MemoryBuffer::getFile(name);
  if (!text) {
    error = fmt::format("{}: {}; write it with --write-baseline={}", name, text.getError().message(), name);
    return false;
  }
  baseline.emplace();
  const llvm::StringRef content = (*text)->getBuffer();
  if (baseline->read({content.data(), content.size()}, error))
    return true;
  error = name + " " + error + "; write it with --write-baseline=" + name;
  return false;
}

} // namespace

bool Gate::open(std::string &error) {
  // What is to be written for the first time cannot be read before.
  const bool isFirst = options.baseline == options.writeBaseline && !fs::exists(options.baseline);
  if (!options.baseline.empty() && isFirst)
    baseline.emplace();
  else if (!options.baseline.empty() && !readBaseline(options.baseline, baseline, error)) {
    error = "--baseline: " + error;
    return false;
  }
  if (!options.writeBaseline.empty() && !writesToOutput() && fs::exists(options.writeBaseline) &&
      !readBaseline(options.writeBaseline, replaced, error)) {
    error = "--write-baseline: " + error + "; it is not overwritten";
    return false;
  }
  if (options.lineFilter.empty())
    return true;
  lines.emplace();
  if (lines->addJson(options.lineFilter, error))
    return true;
  error = "--line-filter: " + error;
  return false;
}

bool Gate::findChanges(const std::string &directory, const std::set<Name> &files, std::string &error) {
  if (options.changedSince.empty())
    return true;
  changes.emplace();
  if (addChangedLines(directory.empty() ? "/" : directory, options.changedSince, files, *changes, told,
                      error))
    return true;
  error = "--changed-since: " + error;
  return false;
}

bool Gate::apply(std::vector<Diagnostic> &diagnostics, ReportRun &run, SourceCache &sources,
                 const LooksAt &looksAt) {
  if (baseline) {
    run.baseline = baseline->compare(diagnostics, run, looksAt);
    const auto besides = [](std::size_t count, const char *what) {
      return count ? fmt::format(", {} {}", count, what) : std::string();
    };
    told.push_back(fmt::format("compared with {}: {} new, {} fixed, {} unchanged{}{}", options.baseline,
                               run.baseline->added, run.baseline->fixed, run.baseline->unchanged,
                               besides(run.baseline->suppressed, "suppressed"),
                               besides(run.baseline->notLookedAt, "not checked")));
  }
  bool isWritten = true;
  if (!options.writeBaseline.empty() && !run.failures.empty() && !options.writeBaselineErrors)
    told.push_back("no baseline is written because the code has errors that may hide findings; "
                   "--write-baseline-errors writes it anyway");
  else if (!options.writeBaseline.empty())
    isWritten = write(diagnostics, run, looksAt);
  const auto before = llvm::count_if(diagnostics, [](const Diagnostic &each) { return each.isActive(); });
  for (std::optional<LineFilter> *filter : {&lines, &changes})
    if (*filter) {
      (*filter)->inFile = [&sources](const Location &where) { return sources.inFile(where); };
      const auto isWanted = [&](const Location &where) { return (*filter)->passes(where); };
      llvm::erase_if(diagnostics, [&](const Diagnostic &each) { return !(*filter)->passes(each); });
      for (Diagnostic &each : diagnostics)
        if (!(*filter)->hasLinesOf(each.where.file))
          showWhereItEnters(each, isWanted);
    }
  const auto hidden =
      before - llvm::count_if(diagnostics, [](const Diagnostic &each) { return each.isActive(); });
  if (hidden > 0)
    told.push_back(fmt::format("{} finding{} on other lines {} not shown", hidden, hidden == 1 ? "" : "s",
                               hidden == 1 ? "is" : "are"));
  return isWritten;
}

bool Gate::write(std::vector<Diagnostic> &diagnostics, const ReportRun &run, const LooksAt &looksAt) {
  Baseline old = replaced.value_or(Baseline());
  std::vector<Diagnostic> marked = diagnostics; // the new baseline goes with the old one of the same file
  old.compare(marked, run, looksAt);
  const std::string text = old.updated(diagnostics, run, looksAt);
  if (writesToOutput()) {
    if (!writeOutput("-", text))
      return false;
  } else if (const std::string problem = writeWholeFile(options.writeBaseline, text); !problem.empty()) {
    complain("--write-baseline: " + problem);
    return false;
  }
  const auto written = llvm::count_if(diagnostics, [](const Diagnostic &each) { return !each.isSuppressed; });
  told.push_back(fmt::format("wrote {} finding{} to {}", written, written == 1 ? "" : "s",
                             writesToOutput() ? "standard output" : options.writeBaseline));
  if (!baseline) // what was just written down is known
    for (Diagnostic &diagnostic : diagnostics)
      diagnostic.baseline = BaselineState::Unchanged;
  return true;
}

} // namespace devicetidy::driver
