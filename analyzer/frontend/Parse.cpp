//===- Parse.cpp - one compile command becomes a unit ---------------------===//
#include "analyzer/frontend/Compat.h"
#include "analyzer/frontend/Instantiation.h"
#include "analyzer/frontend/Lower.h"
#include "analyzer/frontend/LowerAst.h"
#include "analyzer/frontend/Preamble.h"
#include "analyzer/frontend/ProjectDecls.h"
#include "analyzer/frontend/RecordingFiles.h"
#include "analyzer/frontend/ToolArguments.h"
#include "analyzer/frontend/UnitBuilder.h"

#include "clang/AST/ASTMutationListener.h"
#include "clang/Basic/FileManager.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendAction.h"
#include "clang/Lex/Preprocessor.h"
#include "clang/Lex/PreprocessorOptions.h"
#include "clang/Sema/SemaConsumer.h"
#include "clang/Tooling/Tooling.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/TimeProfiler.h"
#include "llvm/Support/VirtualFileSystem.h"

#include <algorithm>

namespace devicetidy::frontend {

using namespace clang;

namespace {

/// How far a parse came.
struct ParseState {
  std::vector<SourceLocation> errors; ///< where errors were found
  std::vector<SourceRange> skipped;   ///< by the preprocessor
  bool reachedEnd = false;
  const std::atomic<bool> *stop = nullptr;

  bool isStopped() const { return stop && *stop; }
};

/// Keeps errors as text, and their places.
class ErrorCollector : public DiagnosticConsumer {
public:
  ErrorCollector(Unit &unit, ParseState &state) : unit(unit), state(state) {}

  void HandleDiagnostic(DiagnosticsEngine::Level level, const Diagnostic &info) override {
    DiagnosticConsumer::HandleDiagnostic(level, info);
    constexpr std::size_t mostErrors = 100;
    if (level < DiagnosticsEngine::Error)
      return;
    if (info.getLocation().isValid())
      state.errors.push_back(info.getLocation());
    if (unit.parseErrors.size() >= mostErrors)
      return;
    llvm::SmallString<256> message;
    info.FormatDiagnostic(message);
    std::string text = "error: " + message.str().str();
    if (info.getLocation().isValid() && info.hasSourceManager()) {
      PresumedLoc place = info.getSourceManager().getPresumedLoc(info.getLocation());
      if (place.isValid())
        text = std::string(place.getFilename()) + ":" + std::to_string(place.getLine()) + ":" +
               std::to_string(place.getColumn()) + ": " + text;
    } else if (isAboutFlags(message.str())) {
      return; // flags of another compiler
    }
    unit.parseErrors.push_back(std::move(text));
  }

private:
  static bool isAboutFlags(llvm::StringRef message) {
    return message.starts_with("unknown argument") || message.starts_with("unsupported option") ||
           message.starts_with("unsupported argument") || message.starts_with("unknown target CPU");
  }

  Unit &unit;
  ParseState &state;
};

/// Notes what conditional compilation leaves out.
class SkippedRanges : public PPCallbacks {
public:
  explicit SkippedRanges(ParseState &state) : state(state) {}
  void SourceRangeSkipped(SourceRange range, SourceLocation) override { state.skipped.push_back(range); }

private:
  ParseState &state;
};

class LoweringConsumer : public SemaConsumer, ASTMutationListener {
public:
  LoweringConsumer(CompilerInstance &compiler, Unit &unit, const LowerOptions &options, ParseState &state)
      : compiler(compiler), state(state), builder(compiler.getASTContext(), unit, options) {}

  void InitializeSema(Sema &sema) override {
    auto collect = [this] { return ProjectDeclCollector(builder.source).collect(topLevel); };
    compat::addExternalSource(sema, new Instantiator(sema, collect));
  }

  bool HandleTopLevelDecl(DeclGroupRef group) override {
    for (Decl *decl : group)
      if (builder.source.inProject(decl))
        topLevel.push_back(decl);
    return !state.isStopped();
  }

  ASTMutationListener *GetASTMutationListener() override { return this; }

  // A class with a member of a type that clang does not know is still a class: marked as invalid, it would be
  // no base or argument of anything, and the code that uses it would be lost with the member.
  void CompletedTagDefinition(const TagDecl *tag) override {
    if (isa<CXXRecordDecl>(tag) && builder.source.inProject(tag))
      const_cast<TagDecl *>(tag)->setInvalidDecl(false);
  }

  bool shouldSkipFunctionBody(Decl *decl) override {
    return isDeviceCode(decl) || (!builder.source.inProject(decl) && !callsBack(decl));
  }

  void HandleTranslationUnit(ASTContext &) override {
    state.reachedEnd = true;
    if (state.isStopped())
      return;
    builder.unit.isCuda = compiler.getLangOpts().CUDA;
    builder.setErrors(state.errors, state.skipped);
    lowerDeclarations(topLevel, compiler.getPreprocessor(), builder);
  }

private:
  CompilerInstance &compiler;
  ParseState &state;
  UnitBuilder builder;
  std::vector<Decl *> topLevel;
};

class LoweringAction : public ASTFrontendAction {
public:
  LoweringAction(Unit &unit, const LowerOptions &options, ParseState &state)
      : unit(unit), options(options), state(state) {}

protected:
  std::unique_ptr<ASTConsumer> CreateASTConsumer(CompilerInstance &compiler, llvm::StringRef) override {
    compiler.getDiagnostics().setErrorLimit(0);
    compiler.getDiagnostics().setFatalsAsError(true);
    compiler.getDiagnostics().setIgnoreAllWarnings(true);
    compiler.getPreprocessor().addPPCallbacks(std::make_unique<SkippedRanges>(state));
    return std::make_unique<LoweringConsumer>(compiler, unit, options, state);
  }

private:
  Unit &unit;
  const LowerOptions &options;
  ParseState &state;
};

class LoweringActionFactory : public tooling::FrontendActionFactory {
public:
  LoweringActionFactory(Unit &unit, const LowerOptions &options, ParseState &state, const Preamble *preamble,
                        bool correctsTypos)
      : unit(unit), options(options), state(state), preamble(preamble), correctsTypos(correctsTypos) {}

  std::unique_ptr<FrontendAction> create() override {
    return std::make_unique<LoweringAction>(unit, options, state);
  }

  bool runInvocation(std::shared_ptr<CompilerInvocation> invocation, FileManager *files,
                     std::shared_ptr<PCHContainerOperations> containers,
                     DiagnosticConsumer *consumer) override {
    FrontendOptions &frontend = invocation->getFrontendOpts();
    frontend.SkipFunctionBodies = true;
    if (preamble) {
      PreprocessorOptions &preprocessor = invocation->getPreprocessorOpts();
      preprocessor.ImplicitPCHInclude = preamble->binaryFile;
      // The caller has checked that the headers of the preamble are unchanged and that its flags are these.
      preprocessor.DisablePCHOrModuleValidation = DisableValidationForModuleKind::All;
    }
    // Spelling correction for a half typed name would read all names of the preamble.
    invocation->getLangOpts().SpellChecking &= correctsTypos;
    invocation->getDiagnosticOpts().IgnoreWarnings = true;
    invocation->getDiagnosticOpts().ShowCarets = false; // no "2 errors generated." on stderr
    return FrontendActionFactory::runInvocation(std::move(invocation), files, std::move(containers),
                                                consumer);
  }

private:
  Unit &unit;
  const LowerOptions &options;
  ParseState &state;
  const Preamble *preamble;
  const bool correctsTypos;
};

/// Flags that choose the processor: one clang does not know would stop it, and devices do not depend on it.
bool choosesProcessor(llvm::StringRef argument) {
  return argument.starts_with("-march=") || argument.starts_with("-mtune=") ||
         argument.starts_with("-mcpu=") || argument.starts_with("-mtls-dialect=");
}

/// One run of clang over the unit; false when it did not come to the end of the file.
bool parseOnce(FileManager &files, const std::vector<std::string> &arguments, const LowerOptions &options,
               Unit &unit, const LowerExtras &extras, const Preamble *preamble = nullptr) {
  const llvm::TimeTraceScope scope("parse");
  ParseState state;
  state.stop = extras.stop;
  ErrorCollector errors(unit, state);
  LoweringActionFactory factory(unit, options, state, preamble, !extras.keepErrors);
  tooling::ToolInvocation invocation(toolArguments(arguments), &factory, &files,
                                     std::make_shared<PCHContainerOperations>());
  invocation.setDiagnosticConsumer(&errors);
  invocation.run();
  return state.reachedEnd;
}

/// Forgets a parse that is done again.
void reset(Unit &unit) {
  const Name mainFile = unit.mainFile;
  unit = {};
  unit.mainFile = mainFile;
}

/// Is an error in one of the headers of the preamble?
bool hasErrorsIn(const Preamble &preamble, const Unit &unit) {
  return llvm::any_of(unit.parseErrors, [&preamble](llvm::StringRef error) {
    return llvm::any_of(preamble.sources, [error](Name file) { return error.starts_with(file.str() + ":"); });
  });
}

/// Parses the unit, again without the preamble if necessary; true when the preamble was used.
bool parseSomehow(FileManager &files, const std::vector<std::string> &arguments, const LowerOptions &options,
                  Unit &unit, const LowerExtras &extras) {
  if (extras.preamble) {
    if (parseOnce(files, arguments, options, unit, extras, extras.preamble) &&
        (unit.parseErrors.empty() || extras.keepErrors ||
         (unit.isCuda && !hasErrorsIn(*extras.preamble, unit))))
      return true; // what CUDA sources lack is not in the preamble's headers
    if (extras.stop && *extras.stop)
      return false;
    reset(unit); // the code may be in error, or only together with the preamble
  }
  bool reachedEnd = parseOnce(files, arguments, options, unit, extras);
  if (!reachedEnd && std::any_of(arguments.begin(), arguments.end(), choosesProcessor)) {
    std::vector<std::string> portable;
    std::copy_if(arguments.begin(), arguments.end(), std::back_inserter(portable),
                 [](const std::string &argument) { return !choosesProcessor(argument); });
    reset(unit);
    reachedEnd = parseOnce(files, portable, options, unit, extras);
  }
  if (!reachedEnd && unit.parseErrors.empty())
    unit.parseErrors.push_back("error: clang cannot run the compile command");
  return false;
}

/// What a unit looked at is also what its preamble was made from.
void addPreamble(const Preamble &preamble, Unit &unit, FileTrace &trace) {
  const auto merge = [](auto &all, const auto &more, auto isBefore, auto isSame) {
    all.insert(all.end(), more.begin(), more.end());
    std::stable_sort(all.begin(), all.end(), isBefore);
    all.erase(std::unique(all.begin(), all.end(), isSame), all.end());
  };
  merge(unit.files, preamble.sources, std::less<>(), std::equal_to<>());
  merge(
      trace.reads, preamble.trace.reads, [](const auto &a, const auto &b) { return a.path < b.path; },
      [](const auto &a, const auto &b) { return a.path == b.path; });
  merge(trace.absent, preamble.trace.absent, std::less<>(), std::equal_to<>());
  merge(trace.directories, preamble.trace.directories, std::less<>(), std::equal_to<>());
}

/// The disk, with the unsaved files in place of what is there.
llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> filesWith(const UnsavedFiles *unsaved) {
  llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> disk = llvm::vfs::createPhysicalFileSystem();
  if (!unsaved || unsaved->empty())
    return disk;
  llvm::IntrusiveRefCntPtr<llvm::vfs::InMemoryFileSystem> memory(new llvm::vfs::InMemoryFileSystem);
  for (const auto &[path, text] : *unsaved)
    memory->addFile(path, 0, llvm::MemoryBuffer::getMemBufferCopy(text, path));
  llvm::IntrusiveRefCntPtr<llvm::vfs::OverlayFileSystem> both(
      new llvm::vfs::OverlayFileSystem(std::move(disk)));
  both->pushOverlay(std::move(memory));
  return both;
}

void parse(const std::string &directory, const std::vector<std::string> &arguments,
           const LowerOptions &options, Unit &unit, const LowerExtras &extras) {
  llvm::IntrusiveRefCntPtr<RecordingFiles> system(new RecordingFiles(filesWith(extras.unsaved)));
  if (system->setCurrentWorkingDirectory(directory)) {
    unit.parseErrors.push_back("error: cannot enter directory '" + directory + "'");
    unit.hasFatalError = true;
    return;
  }
  FileSystemOptions fileOptions;
  fileOptions.WorkingDir = directory;
  llvm::IntrusiveRefCntPtr<FileManager> files(new FileManager(fileOptions, system));
  const bool usedPreamble = parseSomehow(*files, arguments, options, unit, extras);
  const bool hasBodies = std::any_of(unit.functions.begin(), unit.functions.end(),
                                     [](const auto &entry) { return entry.second.hasBody; });
  // Of a CUDA source with kernels alone there is nothing to lower.
  unit.hasFatalError =
      !unit.parseErrors.empty() && !hasBodies && (!unit.isCuda || !unit.skippedFunctions.empty());

  FileTrace trace = system->trace(*files);
  if (const Preamble *preamble = extras.preamble) {
    const auto isOurs = [&](Name path) {
      return path.str() == preamble->headerFile || path.str() == preamble->binaryFile;
    };
    llvm::erase_if(trace.reads, [&](const FileTrace::Read &read) { return isOurs(read.path); });
    llvm::erase_if(unit.files, isOurs);
    if (usedPreamble)
      addPreamble(*preamble, unit, trace);
  }
  if (extras.trace)
    *extras.trace = std::move(trace);
  if (extras.usedPreamble)
    *extras.usedPreamble = usedPreamble;
}

} // namespace

Unit lowerTranslationUnit(const std::string &directory, const std::string &file,
                          const std::vector<std::string> &arguments, const LowerOptions &options,
                          const LowerExtras &extras) {
  Unit unit;
  llvm::SmallString<256> path(file);
  if (!llvm::sys::path::is_absolute(path)) {
    path = directory;
    llvm::sys::path::append(path, file);
  }
  llvm::sys::path::remove_dots(path, /*remove_dot_dot=*/true);
  unit.mainFile = Name(path.str().str());
  parse(directory, arguments, options, unit, extras);
  return unit;
}

} // namespace devicetidy::frontend
