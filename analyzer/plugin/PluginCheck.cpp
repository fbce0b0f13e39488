#include "analyzer/config/Values.h"
#include "analyzer/plugin/AstAnalysis.h"
#include "checks/CheckRegistry.h"

#include "clang-tidy/ClangTidyCheck.h"
#include "clang-tidy/ClangTidyModule.h"
#include "clang/ASTMatchers/ASTMatchFinder.h"
#include "clang/ASTMatchers/ASTMatchers.h"
#include "clang/Basic/Version.h"
#if CLANG_VERSION_MAJOR < 22 // later ones have it all in ClangTidyModule.h
#include "clang-tidy/ClangTidyModuleRegistry.h"
#endif

namespace devicetidy::plugin {
namespace {

using namespace clang;
using tidy::ClangTidyCheck;
using tidy::ClangTidyContext;
using tidy::ClangTidyOptions;

SourceLocation placeOf(SourceManager &sources, Name file, unsigned line, unsigned column) {
  if (const auto entry = sources.getFileManager().getOptionalFileRef(file.str()))
    return sources.translateFileLineCol(*entry, line, column);
  return {};
}

CharSourceRange rangeOf(SourceManager &sources, const Location &where) {
  return CharSourceRange::getCharRange(placeOf(sources, where.file, where.line, where.column),
                                       placeOf(sources, where.file, where.endLine, where.endColumn));
}

/// The CheckOptions of all checks, or their defaults: the checks share one
/// analysis.
std::map<std::string, std::string> checkOptions(const ClangTidyContext &context) {
  std::map<std::string, std::string> values;
  for (const CheckInfo &info : checkInfos())
    for (const CheckOption &option : info.options) {
      const std::string name = std::string(info.name) + "." + std::string(option.name);
      const auto found = context.getOptions().CheckOptions.find(name);
      values[name] = found == context.getOptions().CheckOptions.end() ? std::string(option.value)
                                                                      : found->getValue().Value;
    }
  return values;
}

/// One check of the registry, reported by clang-tidy. Options, of one check or of all: `Level` (definite,
/// likely, latent) and `TorchVersion` (as 2.6); of one check: those in checks.json.
class PluginCheck : public ClangTidyCheck {
public:
  PluginCheck(StringRef name, ClangTidyContext *context)
      : ClangTidyCheck(name, context), name(name.str()), tidy(*context),
        levelName(Options.getLocalOrGlobal("Level", "likely").str()),
        torchVersion(Options.getLocalOrGlobal("TorchVersion", "").str()) {
    // Asking for them is what makes them known to clang-tidy --verify-config.
    for (const CheckOption &option : findCheckInfo(this->name)->options)
      Options.get(StringRef(option.name), StringRef(option.value));
    readOptions();
  }

  bool isLanguageVersionSupported(const LangOptions &language) const override { return language.CPlusPlus; }

  void storeOptions(ClangTidyOptions::OptionMap &options) override {
    Options.store(options, "Level", levelName);
    Options.store(options, "TorchVersion", torchVersion);
    for (const CheckOption &option : findCheckInfo(name)->options)
      if (option.name != "Level")
        Options.store(options, StringRef(option.name),
                      settings.checkOptions.at(name + "." + std::string(option.name)));
  }

  void registerPPCallbacks(const SourceManager &, Preprocessor *used, Preprocessor *) override {
    preprocessor = used;
  }

  void registerMatchers(ast_matchers::MatchFinder *finder) override {
    finder->addMatcher(ast_matchers::translationUnitDecl(), this);
  }

  void check(const ast_matchers::MatchFinder::MatchResult &result) override {
    // What clang cannot compile has errors of its own, and clang-tidy shows them.
    if (!preprocessor || result.Context->getDiagnostics().hasUncompilableErrorOccurred())
      return;
    settings.buildDirectory = tidy.getCurrentBuildDirectory();
    analysis = AstAnalysis::of(*result.Context, *preprocessor, settings);
    if (analysis->crashed)
      configurationDiag("the device analysis failed on this file");
    for (const devicetidy::Diagnostic &each : analysis->diagnostics)
      if (each.check == name && each.level <= level)
        report(each, *result.SourceManager);
  }

private:
  void readOptions() {
    std::string error;
    level = config::parseLevel(levelName, error).value_or(Level::Likely);
    if (!error.empty())
      configurationDiag("Level: %0") << error;
    settings.reportLatent = level == Level::Latent;
    settings.checkOptions = checkOptions(tidy);
    for (const CheckOption &option : findCheckInfo(name)->options)
      if (std::string wrong = config::wrongOptionValue(
              option, settings.checkOptions.at(name + "." + std::string(option.name)));
          !wrong.empty() && option.name != "Level")
        configurationDiag("%0: %1") << StringRef(option.name) << wrong;
    error.clear();
    if (!torchVersion.empty())
      settings.torchVersion = config::parseTorchVersion(torchVersion, error).value_or(config::TorchVersion());
    if (!error.empty())
      configurationDiag("TorchVersion: %0") << error;
  }

  // The sentences are arguments: a '%' in the source they quote means nothing.
  void report(const devicetidy::Diagnostic &each, SourceManager &sources) {
    {
      auto builder = diag(placeOf(sources, each.where.file, each.where.line, each.where.column), "%0")
                     << each.message;
      for (const Location &range : each.ranges)
        builder << rangeOf(sources, range);
      if (each.fix)
        builder << FixItHint::CreateReplacement(rangeOf(sources, each.fix->change.where),
                                                each.fix->change.text);
    }
    for (const Note &note : each.notes)
      diag(placeOf(sources, note.where.file, note.where.line, note.where.column), "%0", DiagnosticIDs::Note)
          << note.text;
  }

  const std::string name;
  ClangTidyContext &tidy;
  const std::string levelName, torchVersion;
  Level level = Level::Likely;
  Settings settings;
  Preprocessor *preprocessor = nullptr;
  std::shared_ptr<const AstAnalysis> analysis; ///< kept for the other checks of the tree
};

class Module : public tidy::ClangTidyModule {
public:
  void addCheckFactories(tidy::ClangTidyCheckFactories &factories) override {
    for (const CheckInfo &info : checkInfos())
      factories.registerCheck<PluginCheck>(StringRef(info.name.data(), info.name.size()));
  }
};

tidy::ClangTidyModuleRegistry::Add<Module> add("device-tidy", "Tensors on the wrong device");

} // namespace
} // namespace devicetidy::plugin
