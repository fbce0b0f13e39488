#include "analyzer/driver/options/Options.h"

#include "analyzer/config/Suggest.h"
#include "analyzer/driver/options/OptionRules.h"
#include "analyzer/driver/options/ResponseFiles.h"
#include "analyzer/facts/Language.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>

// The options are read here and not with llvm::cl, because LLVM's libraries put options of their own on every
// such command line, among them one that is also called --stats.

namespace devicetidy::driver {
namespace {

using llvm::StringRef;

/// One option: how it is spelled, what it does, and what --help says.
struct OptionSpec {
  StringRef name;  ///< with its dashes
  StringRef value; ///< placeholder of its value; empty for a flag
  StringRef group;
  StringRef help;
  /// Applies the option; a sentence when the value is wrong, else empty.
  std::string (*apply)(Options &options, StringRef value);
  bool isRare = false; ///< listed by --help-all only
};

template <bool Options::*Member> std::string setFlag(Options &options, StringRef) {
  options.*Member = true;
  return {};
}

/// An empty value is one that a script has failed to fill in: without it the run would be another.
constexpr const char *emptyValue = "the value is empty; give a value or remove the option";

template <std::string Options::*Member> std::string setText(Options &options, StringRef value) {
  options.*Member = value.str();
  return value.empty() ? emptyValue : std::string();
}

template <std::vector<std::string> Options::*Member> std::string addText(Options &options, StringRef value) {
  (options.*Member).push_back(value.str());
  return value.empty() ? emptyValue : std::string();
}

template <std::optional<std::string> config::CommandLine::*Member>
std::string setConfig(Options &options, StringRef value) {
  options.config.*Member = value.str();
  return {};
}

template <std::vector<std::string> config::CommandLine::*Member>
std::string addConfig(Options &options, StringRef value) {
  (options.config.*Member).push_back(value.str());
  return {};
}

std::string setLevel(Options &options, StringRef value) {
  std::string error;
  config::parseLevel(value, error);
  options.config.level = value.str();
  return error;
}

std::string setColour(Options &options, StringRef value) {
  static const std::vector<std::string> names = {"auto", "always", "never"};
  const auto found = std::find(names.begin(), names.end(), value.str());
  if (found == names.end())
    return config::notOneOf(value, names);
  options.colour = static_cast<Colour>(found - names.begin());
  return {};
}

std::string setFormat(Options &options, StringRef value) {
  static const std::vector<std::string> names = {"text", "concise", "html",  "sarif",
                                                 "json", "github",  "gitlab"};
  if (std::find(names.begin(), names.end(), value.str()) == names.end())
    return config::notOneOf(value, names);
  options.format = value.str();
  return {};
}

std::string setGraphFormat(Options &options, StringRef value) {
  static const std::vector<std::string> names = {"dot", "svg"};
  if (std::find(names.begin(), names.end(), value.str()) == names.end())
    return config::notOneOf(value, names);
  options.graphFormat = value.str();
  return {};
}

std::string setJobs(Options &options, StringRef value) {
  if (value.getAsInteger(10, options.jobs) || options.jobs == 0 || options.jobs > 1024)
    return "'" + value.str() + "' is not a number of jobs";
  return {};
}

std::string setTorchVersion(Options &options, StringRef value) {
  std::string error;
  config::parseTorchVersion(value, error);
  options.config.torchVersion = value.str();
  return error;
}

std::string setShard(Options &options, StringRef value) {
  const auto [index, count] = value.split('/');
  if (index.getAsInteger(10, options.shard.index) || count.getAsInteger(10, options.shard.count) ||
      options.shard.index == 0 || options.shard.count == 0)
    return "'" + value.str() + "' is not a shard like 1/4, the first of four";
  if (options.shard.index > options.shard.count)
    return "there is no shard " + index.str() + " of " + count.str() + "; they are numbered from 1";
  return {};
}

constexpr bool Rare = true;
constexpr StringRef Input = "What to analyse", Checks = "What to report", Config = "Configuration",
                    Report = "How to report", Repair = "What to repair",
                    ScaleOut = "How to distribute the work", Other = "Other";

const OptionSpec Specs[] = {
    {"-p", "DIR", Input, "directory of compile_commands.json or compile_flags.txt, or the file itself",
     setText<&Options::buildPath>},
    {"--extra-arg", "ARG", Input, "append ARG to every compile command",
     addConfig<&config::CommandLine::extraArguments>},
    {"--extra-arg-before", "ARG", Input, "insert ARG before the arguments of every compile command",
     addConfig<&config::CommandLine::extraArgumentsBefore>, Rare},
    {"--removed-arg", "ARG", Input, "remove ARG from every compile command",
     addConfig<&config::CommandLine::removedArguments>, Rare},
    {"--models", "FILE", Input, "also read models of your own libraries from FILE (docs/models.md)",
     addConfig<&config::CommandLine::models>, Rare},
    {"--torch-version", "X.Y", Input,
     "use the device rules of this LibTorch version (default: the version that the code includes)",
     setTorchVersion, Rare},
    {"-j", "N", Input, "how many translation units to read in parallel (default: one per processor)",
     setJobs},
    {"--python", "FILE", Input, "read Python files with the parser of this interpreter (default: python3)",
     setText<&Options::python>, Rare},
    {"--whole-program", "", Input, "with FILES: read every other translation unit too, for context",
     setFlag<&Options::wholeProgram>, Rare},
    {"--cache-dir", "DIR", Input, "directory of the cache (default: $XDG_CACHE_HOME/device-tidy)",
     setText<&Options::cacheDirectory>, Rare},
    {"--no-cache", "", Input, "do not use the cache", setFlag<&Options::noCache>, Rare},
    {"--clear-cache", "", Input, "clear the cache first; without FILES and -p, do nothing else",
     setFlag<&Options::clearCache>, Rare},
    {"--project-root", "DIR", Input,
     "code below DIR belongs to the project (default: detected); may be repeated",
     addText<&Options::projectRoots>, Rare},
    {"--checks", "GLOBS", Checks, "checks to run, a comma-separated list; -GLOB removes (default: *)",
     setConfig<&config::CommandLine::checks>},
    {"--level", "LEVEL", Checks, "lowest level to show: definite, likely or latent (default: likely)",
     setLevel},
    {"--header-filter", "REGEX", Checks,
     "show findings in headers whose path matches (default: all of the project)",
     setConfig<&config::CommandLine::headerFilter>},
    {"--exclude-header-filter", "REGEX", Checks, "hide findings in headers whose path matches",
     setConfig<&config::CommandLine::excludeHeaderFilter>, Rare},
    {"--warnings-as-errors", "GLOBS", Checks, "checks whose findings are reported as errors",
     setConfig<&config::CommandLine::warningsAsErrors>},
    {"--baseline", "FILE", Checks, "show only findings that are not in the report FILE (json or sarif)",
     setText<&Options::baseline>},
    {"--write-baseline", "FILE", Checks, "write the findings to FILE (- for standard output), for --baseline",
     setText<&Options::writeBaseline>},
    {"--write-baseline-errors", "", Checks, "write the baseline even if the code has errors",
     setFlag<&Options::writeBaselineErrors>, Rare},
    {"--changed-since", "REF", Checks, "show only findings that touch lines changed since the commit REF",
     setText<&Options::changedSince>},
    {"--line-filter", "JSON", Checks,
     "show only findings that touch these lines, in the format of clang-tidy", setText<&Options::lineFilter>,
     Rare},
    {"--report-unused-suppressions", "", Checks,
     "report NOLINT comments for these checks that suppress nothing",
     setFlag<&Options::reportUnusedSuppressions>, Rare},
    {"--config", "YAML", Config, "the configuration, instead of .device-tidy files",
     setConfig<&config::CommandLine::config>, Rare},
    {"--config-file", "FILE", Config, "read the configuration from FILE, instead of .device-tidy files",
     setConfig<&config::CommandLine::configFile>, Rare},
    {"--dump-config", "", Config, "print the configuration of the first of FILES",
     setFlag<&Options::dumpConfig>},
    {"--explain-config", "", Config, "print which file or option each value comes from",
     setFlag<&Options::explainConfig>, Rare},
    {"--verify-config", "", Config, "check the configuration of FILES for errors",
     setFlag<&Options::verifyConfig>, Rare},
    {"--format", "FORMAT", Report, "text, concise, html, sarif, json, github or gitlab (default: text)",
     setFormat},
    {"--output", "FILE", Report, "write the report to FILE", setText<&Options::output>},
    {"--source-root", "DIR", Report,
     "directory that file names in reports are relative to, except in text (default: repository)",
     setText<&Options::sourceRoot>, Rare},
    {"--graph", "FUNCTION", Report, "draw where the tensors of FUNCTION are and how they move, then exit",
     setText<&Options::graph>, Rare},
    {"--graph-format", "FORMAT", Report, "dot or svg (default: from the name of --output, else dot)",
     setGraphFormat, Rare},
    {"--show-suppressed", "", Report, "also list findings that NOLINT comments suppress or the baseline has",
     setFlag<&Options::showSuppressed>},
    {"--color", "WHEN", Report, "auto, always or never (default: auto)", setColour, Rare},
    {"--stats", "", Report, "print times, counts and what was not understood", setFlag<&Options::stats>},
    {"--profile", "FILE", Report, "write a time trace to FILE, for a trace viewer",
     setText<&Options::profile>, Rare},
    {"--quiet", "", Report, "no progress, no summary", setFlag<&Options::quiet>},
    {"--fix", "", Repair, "apply the fixes to the files, unless the code has errors", setFlag<&Options::fix>},
    {"--fix-errors", "", Repair, "apply the fixes even if the code has errors", setFlag<&Options::fixErrors>,
     Rare},
    {"--export-fixes", "FILE", Repair, "write the fixes to FILE for clang-apply-replacements",
     setText<&Options::exportFixes>, Rare},
    {"--emit-facts", "FILE", ScaleOut, "write the facts of the sources and exit; - prints them as text",
     setText<&Options::emitFacts>, Rare},
    {"--depfile", "FILE", ScaleOut,
     "with --emit-facts: write the files that were read to FILE, as Make rules", setText<&Options::depfile>,
     Rare},
    {"--shard", "I/N", ScaleOut, "with --emit-facts: read only part I of N of the translation units",
     setShard, Rare},
    {"--link", "", ScaleOut, "FILES are facts files; analyse them together", setFlag<&Options::link>, Rare},
    {"--lsp", "", Other, "run as a language server on standard input and output (docs/editors.md)",
     setFlag<&Options::lsp>},
    {"--list-checks", "", Other, "list the checks that --checks selects", setFlag<&Options::listChecks>},
    {"--list-models", "", Other, "list the operators, functions, modules and classes that have a model",
     setFlag<&Options::listModels>, Rare},
    {"--explain", "CHECK", Other, "print the page of a check", setText<&Options::explain>},
    {"--version", "", Other, "print the version", setFlag<&Options::version>},
    {"--help", "", Other, "list the common options", setFlag<&Options::help>},
    {"--help-all", "", Other, "list all options", setFlag<&Options::helpAll>},
};

/// An option as the user wrote it.
struct WrittenOption {
  const OptionSpec *spec = nullptr;
  StringRef value; ///< what follows in the same argument
  bool hasValue = false;
};

/// Recognises "--level=likely", "-level" (the value is the next argument), "-h" and "-j8".
WrittenOption readOption(StringRef argument) {
  if (argument == "-h")
    argument = "--help";
  const auto [name, value] = argument.split('=');
  for (const OptionSpec &spec : Specs)
    if (name.ltrim('-') == spec.name.ltrim('-'))
      return {&spec, value, argument.contains('=')};
  for (const OptionSpec &spec : Specs) // only -j takes its value without a separator
    if (spec.name == "-j" && argument.starts_with("-j"))
      return {&spec, argument.drop_front(2), true};
  return {};
}

std::string unknownOption(StringRef argument) {
  std::vector<std::string> names;
  for (const OptionSpec &spec : Specs)
    names.push_back(spec.name.str());
  const StringRef bare = argument.split('=').first;
  const std::string dashed = bare.starts_with("--") ? bare.str() : "-" + bare.str();
  return "unknown option '" + bare.str() + "'" + config::suggestion(dashed, names);
}

} // namespace

bool parseOptions(const std::vector<std::string> &written, Options &options, std::string &error) {
  std::vector<std::string> arguments;
  if (!expandResponseFiles(written, arguments, error))
    return false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const StringRef argument = arguments[i];
    if (argument == "--") {
      options.hasFixedArguments = true;
      options.fixedArguments.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, arguments.end());
      break;
    }
    if (!argument.starts_with("-") || argument == "-") {
      options.files.push_back(argument.str());
      continue;
    }
    auto [spec, value, hasValue] = readOption(argument);
    if (!spec) {
      error = unknownOption(argument);
      return false;
    }
    if (spec->value.empty() && hasValue) {
      error = spec->name.str() + " takes no value";
      return false;
    }
    if (!spec->value.empty() && !hasValue) {
      if (++i == arguments.size()) {
        error = spec->name.str() + " needs a value: " + spec->name.str() + "=" + spec->value.str();
        return false;
      }
      value = arguments[i];
    }
    if (std::string wrong = spec->apply(options, value); !wrong.empty()) {
      error = spec->name.str() + ": " + wrong;
      return false;
    }
  }
  error = conflictingOptions(options);
  return error.empty();
}

SourceRequest sourceRequest(const Options &options) {
  SourceRequest request{options.files,          options.buildPath,    options.hasFixedArguments,
                        options.fixedArguments, options.projectRoots, options.lsp};
  llvm::erase_if(request.files, isPython);
  return request;
}

std::string helpText(bool isComplete) {
  std::string text =
      "Finds tensors on the wrong device in C++ code that uses LibTorch, and in Python files and folders.\n\n"
      "usage: device-tidy [-p BUILD_DIR] [options] [FILES...] [-- compiler arguments]\n"
      "       device-tidy --link [options] FACTS...\n\n"
      "Without FILES every translation unit of the compile database is analysed. "
      "@FILE stands for the arguments in FILE.\n";
  StringRef group;
  for (const OptionSpec &spec : Specs) {
    if (spec.isRare && !isComplete)
      continue;
    if (spec.group != group)
      text += "\n" + spec.group.str() + ":\n";
    group = spec.group;
    std::string left = "  " + spec.name.str();
    if (!spec.value.empty())
      left += (spec.name.starts_with("--") ? "=" : " ") + spec.value.str();
    left.resize(std::max<std::size_t>(left.size() + 2, 30), ' ');
    text += left + spec.help.str() + "\n";
  }
  if (!isComplete)
    text += "\ndevice-tidy --help-all lists all options.\n";
  return text + "\nExit status: 0 no findings, 1 with findings, 2 wrong command line or configuration, 3 a "
                "source could not "
                "be parsed.\n";
}

} // namespace devicetidy::driver
