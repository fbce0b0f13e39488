#include "analyzer/frontend/LowerAst.h"

#include "analyzer/frontend/ProjectDecls.h"
#include "analyzer/frontend/ToolArguments.h"

#include "clang/Lex/MacroInfo.h"
#include "llvm/Support/TimeProfiler.h"

#include <set>

namespace devicetidy::frontend {

using namespace clang;

namespace {

/// The number that a macro expands to; 0 when it is not a macro or expands to something else.
int macroNumber(Preprocessor &preprocessor, llvm::StringRef name) {
  const MacroInfo *macro = preprocessor.getMacroInfo(preprocessor.getIdentifierInfo(name));
  if (!macro || macro->getNumTokens() != 1)
    return 0;
  int number = 0;
  const std::string text = preprocessor.getSpelling(macro->getReplacementToken(0));
  return llvm::StringRef(text).getAsInteger(10, number) ? 0 : number;
}

/// Names of the templates that the unit has no instance of, each once, in the order of the source.
std::vector<Name> withoutInstance(const std::vector<FunctionDecl *> &patterns, UnitBuilder &builder) {
  std::set<Name> known;
  for (const auto &[id, function] : builder.unit.functions)
    if (function.hasBody)
      known.insert(function.name);
  std::vector<Name> names;
  for (const FunctionDecl *pattern : patterns)
    if (const Name name = builder.naming.qualified(pattern); known.insert(name).second)
      names.push_back(name);
  return names;
}

} // namespace

void lowerDeclarations(const std::vector<Decl *> &topLevel, Preprocessor &preprocessor,
                       UnitBuilder &builder) {
  const llvm::TimeTraceScope scope("lower");
  builder.unit.torchMajor = macroNumber(preprocessor, "TORCH_VERSION_MAJOR");
  builder.unit.torchMinor = macroNumber(preprocessor, "TORCH_VERSION_MINOR");
  ProjectDecls decls = ProjectDeclCollector(builder.source).collect(topLevel);
  for (const CXXRecordDecl *record : decls.records)
    builder.types.id(record);
  for (const VarDecl *variable : decls.variables)
    builder.requestGlobal(variable);
  for (const FunctionDecl *function : decls.functions)
    builder.request(function);
  builder.lowerRequested();
  builder.unit.uninstantiated = withoutInstance(decls.patterns, builder);
  builder.unit.files = sourceFiles(preprocessor.getSourceManager());
}

Unit lowerAst(ASTContext &context, Preprocessor &preprocessor, const LowerOptions &options) {
  Unit unit;
  UnitBuilder builder(context, unit, options);
  unit.mainFile = builder.source.path(context.getSourceManager().getMainFileID());
  std::vector<Decl *> topLevel;
  for (Decl *decl : context.getTranslationUnitDecl()->decls())
    if (builder.source.inProject(decl))
      topLevel.push_back(decl);
  lowerDeclarations(topLevel, preprocessor, builder);
  return unit;
}

} // namespace devicetidy::frontend
