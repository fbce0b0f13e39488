#include "analyzer/driver/options/OptionRules.h"

#include <fmt/format.h>

#include <vector>

namespace devicetidy::driver {
namespace {

/// An option, and whether it was given.
struct Given {
  const char *name;
  bool isGiven;
};

const char *firstGiven(const std::vector<Given> &options) {
  for (const Given &each : options)
    if (each.isGiven)
      return each.name;
  return nullptr;
}

/// Facts hold what these would decide.
const char *readingOption(const Options &options) {
  return firstGiven({{"-p", !options.buildPath.empty()},
                     {"--", options.hasFixedArguments},
                     {"--extra-arg", !options.config.extraArguments.empty()},
                     {"--extra-arg-before", !options.config.extraArgumentsBefore.empty()},
                     {"--removed-arg", !options.config.removedArguments.empty()},
                     {"--project-root", !options.projectRoots.empty()},
                     {"--whole-program", options.wholeProgram},
                     {"--cache-dir", !options.cacheDirectory.empty()},
                     {"--no-cache", options.noCache},
                     {"--clear-cache", options.clearCache}});
}

const char *reportingOption(const Options &options) {
  return firstGiven({{"--output", !options.output.empty()},
                     {"--format", options.format != "text"},
                     {"--graph", !options.graph.empty()},
                     {"--fix", options.fix},
                     {"--fix-errors", options.fixErrors},
                     {"--export-fixes", !options.exportFixes.empty()},
                     {"--show-suppressed", options.showSuppressed},
                     {"--report-unused-suppressions", options.reportUnusedSuppressions},
                     {"--baseline", !options.baseline.empty()},
                     {"--write-baseline", !options.writeBaseline.empty()},
                     {"--changed-since", !options.changedSince.empty()},
                     {"--line-filter", !options.lineFilter.empty()}});
}

/// What an editor shows comes from its own requests.
std::string serverConflict(const Options &options) {
  if (!options.files.empty())
    return "--lsp takes no FILES; the editor says which files are open";
  if (const char *name = reportingOption(options))
    return fmt::format("--lsp serves an editor, so {} has no effect", name);
  return {};
}

std::string linkConflict(const Options &options) {
  if (!options.emitFacts.empty())
    return "--link reads facts and --emit-facts writes them; use only one of them";
  if (const char *name = readingOption(options))
    return fmt::format("--link reads no source code, so {} has no effect; give it to --emit-facts", name);
  if (options.files.empty())
    return "--link needs the names of facts files, which --emit-facts writes";
  return {};
}

std::string graphConflict(const Options &options) {
  if (options.graph.empty())
    return options.graphFormat.empty() ? std::string() : "--graph-format needs --graph=FUNCTION";
  if (const char *name = firstGiven({{"--format", options.format != "text"},
                                     {"--fix", options.fix},
                                     {"--fix-errors", options.fixErrors},
                                     {"--export-fixes", !options.exportFixes.empty()},
                                     {"--baseline", !options.baseline.empty()},
                                     {"--write-baseline", !options.writeBaseline.empty()},
                                     {"--show-suppressed", options.showSuppressed}}))
    return fmt::format("--graph draws one function and reports nothing, so {} has no effect", name);
  return {};
}

} // namespace

std::string conflictingOptions(const Options &options) {
  if (options.help || options.helpAll || options.version || options.listChecks || options.listModels ||
      !options.explain.empty() || options.dumpConfig || options.verifyConfig || options.explainConfig)
    return {};
  if (options.lsp)
    return serverConflict(options);
  const bool writesFile = !options.emitFacts.empty() && options.emitFacts != "-";
  if (options.shard.count && !writesFile)
    return fmt::format(
        "--shard reads a part of the program, and findings in a part may be wrong for the "
        "whole; write it with --shard={0}/{1} --emit-facts=FILE and report with --link FILES, all "
        "{1} of them",
        options.shard.index, options.shard.count);
  if (!options.depfile.empty() && !writesFile)
    return "--depfile says what a facts file was made from; it needs --emit-facts=FILE";
  if (options.writeBaselineErrors && options.writeBaseline.empty())
    return "--write-baseline-errors needs --write-baseline=FILE";
  if (options.writeBaseline == "-" && options.output.empty() &&
      (options.format != "text" || !options.baseline.empty() || options.showSuppressed ||
       options.writeBaselineErrors))
    return "--write-baseline=- and the report would both be on standard output; give one of them a file";
  if (std::string conflict = graphConflict(options); !conflict.empty())
    return conflict;
  if (options.link)
    return linkConflict(options);
  if (!options.emitFacts.empty())
    if (const char *name = reportingOption(options))
      return fmt::format("--emit-facts reports nothing, so {} has no effect; give it to --link", name);
  return {};
}

} // namespace devicetidy::driver
