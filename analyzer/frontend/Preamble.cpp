#include "analyzer/frontend/Preamble.h"

#include "analyzer/frontend/RecordingFiles.h"
#include "analyzer/frontend/SourceFiles.h"
#include "analyzer/frontend/ToolArguments.h"

#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendActions.h"
#include "clang/Frontend/MultiplexConsumer.h"
#include "clang/Serialization/PCHContainerOperations.h"
#include "clang/Tooling/Tooling.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

namespace devicetidy::frontend {

using namespace clang;

namespace {

/// Skips the bodies that a unit skips.
class BodySkipper : public ASTConsumer {
public:
  BodySkipper(const ASTContext &context, const LowerOptions &options)
      : source(context, options.isProjectFile) {}

  bool shouldSkipFunctionBody(Decl *decl) override { return !source.inProject(decl) && !callsBack(decl); }

private:
  SourceFiles source;
};

/// Keeps what clang would write: its own writer ends the process when the disk is full.
class KeepingWriter : public PCHContainerWriter {
public:
  explicit KeepingWriter(std::shared_ptr<PCHBuffer> &kept) : kept(kept) {}

  llvm::StringRef getFormat() const override { return "raw"; }
  std::unique_ptr<ASTConsumer> CreatePCHContainerGenerator(CompilerInstance &, const std::string &,
                                                           const std::string &,
                                                           std::unique_ptr<llvm::raw_pwrite_stream>,
                                                           std::shared_ptr<PCHBuffer> buffer) const override {
    kept = std::move(buffer);
    return std::make_unique<ASTConsumer>();
  }

private:
  std::shared_ptr<PCHBuffer> &kept;
};

bool write(const PCHBuffer &buffer, const std::string &file) {
  std::error_code code;
  llvm::raw_fd_ostream stream(file, code);
  if (code)
    return false;
  stream.write(buffer.Data.data(), buffer.Data.size());
  stream.close();
  const bool isFine = buffer.IsComplete && !stream.has_error();
  stream.clear_error();
  return isFine;
}

class PreambleAction : public GeneratePCHAction {
public:
  PreambleAction(const LowerOptions &options, Preamble &preamble) : options(options), preamble(preamble) {}

protected:
  std::unique_ptr<ASTConsumer> CreateASTConsumer(CompilerInstance &compiler, llvm::StringRef file) override {
    compiler.getDiagnostics().setIgnoreAllWarnings(true);
    std::vector<std::unique_ptr<ASTConsumer>> consumers;
    consumers.push_back(GeneratePCHAction::CreateASTConsumer(compiler, file));
    if (!consumers.front())
      return nullptr;
    consumers.push_back(std::make_unique<BodySkipper>(compiler.getASTContext(), options));
    return std::make_unique<MultiplexConsumer>(std::move(consumers));
  }

  void EndSourceFileAction() override {
    preamble.sources = sourceFiles(getCompilerInstance().getSourceManager());
    for (const auto &entry : getCompilerInstance().getPreprocessor().getIdentifierTable())
      preamble.identifiers.push_back(identifierHash(entry.getKey()));
    llvm::sort(preamble.identifiers);
    GeneratePCHAction::EndSourceFileAction();
  }

private:
  const LowerOptions &options;
  Preamble &preamble;
};

class PreambleActionFactory : public tooling::FrontendActionFactory {
public:
  PreambleActionFactory(const LowerOptions &options, Preamble &preamble)
      : options(options), preamble(preamble) {}

  std::unique_ptr<FrontendAction> create() override {
    return std::make_unique<PreambleAction>(options, preamble);
  }

  bool runInvocation(std::shared_ptr<CompilerInvocation> invocation, FileManager *files,
                     std::shared_ptr<PCHContainerOperations> containers,
                     DiagnosticConsumer *consumer) override {
    FrontendOptions &output = invocation->getFrontendOpts();
    output.ProgramAction = clang::frontend::GeneratePCH;
    output.OutputFile = preamble.binaryFile;
    output.SkipFunctionBodies = true;
    invocation->getDiagnosticOpts().IgnoreWarnings = true;
    invocation->getDiagnosticOpts().ShowCarets = false;
    return FrontendActionFactory::runInvocation(std::move(invocation), files, std::move(containers),
                                                consumer);
  }

private:
  const LowerOptions &options;
  Preamble &preamble;
};

} // namespace

std::uint32_t identifierHash(std::string_view word) {
  return static_cast<std::uint32_t>(llvm::xxh3_64bits(word));
}

std::vector<std::string> withoutForcedIncludes(const std::vector<std::string> &arguments) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i] == "-Xclang" && i + 3 < arguments.size() && arguments[i + 1] == "-include")
      i += 3;
    else
      result.push_back(arguments[i]);
  return result;
}

bool buildPreamble(const std::string &directory, const std::vector<std::string> &arguments,
                   const LowerOptions &options, Preamble &preamble) {
  llvm::IntrusiveRefCntPtr<RecordingFiles> system(new RecordingFiles(llvm::vfs::createPhysicalFileSystem()));
  if (system->setCurrentWorkingDirectory(directory))
    return false;
  FileSystemOptions fileOptions;
  fileOptions.WorkingDir = directory;
  llvm::IntrusiveRefCntPtr<FileManager> files(new FileManager(fileOptions, system));
  std::vector<std::string> own = withoutForcedIncludes(arguments);
  if (llvm::none_of(own, [](const std::string &argument) { return argument == "--cuda-host-only"; }))
    own.insert(own.end(), {"-x", "c++-header"}); // clang has no name for a header of CUDA
  own.push_back(preamble.headerFile);
  PreambleActionFactory factory(options, preamble);
  DiagnosticConsumer silent; // only counts
  std::shared_ptr<PCHBuffer> binary;
  auto containers = std::make_shared<PCHContainerOperations>();
  containers->registerWriter(std::make_unique<KeepingWriter>(binary));
  tooling::ToolInvocation invocation(toolArguments(own), &factory, files.get(), containers);
  invocation.setDiagnosticConsumer(&silent);
  bool isFine =
      invocation.run() && silent.getNumErrors() == 0 && binary && write(*binary, preamble.binaryFile);
  preamble.trace = system->trace(*files);
  llvm::erase_if(preamble.trace.reads,
                 [&](const auto &read) { return read.path.str() == preamble.headerFile; });
  llvm::erase(preamble.sources, Name(preamble.headerFile));
  isFine &= llvm::none_of(preamble.sources, [&](Name file) { return options.isProjectFile(file.str()); });
  if (!isFine)
    llvm::sys::fs::remove(preamble.binaryFile);
  return isFine;
}

} // namespace devicetidy::frontend
