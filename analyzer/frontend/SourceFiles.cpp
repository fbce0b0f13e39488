#include "analyzer/frontend/SourceFiles.h"

#include "clang/Basic/SourceManager.h"
#include "clang/Lex/Lexer.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace devicetidy::frontend {

using namespace clang;

namespace {

bool isReservedName(llvm::StringRef name) {
  return name.starts_with("__") || (name.size() > 1 && name[0] == '_' && llvm::isUpper(name[1]));
}

// Helpers stand in namespace std, or in one with a name that is reserved for the library.
bool isOfStandardLibrary(const Decl *decl) {
  const NamespaceDecl *outermost = nullptr;
  for (const DeclContext *context = decl->getDeclContext(); context; context = context->getParent())
    if (const auto *space = dyn_cast<NamespaceDecl>(context))
      outermost = space;
  return outermost && (outermost->getName() == "std" || isReservedName(outermost->getName()));
}

// Is it in a class like std::function, made for a type `R(Args...)`?
bool isForSignature(const FunctionDecl *function) {
  const auto *owner = dyn_cast<ClassTemplateSpecializationDecl>(function->getDeclContext());
  return owner && llvm::any_of(owner->getTemplateArgs().asArray(), [](const TemplateArgument &argument) {
           return argument.getKind() == TemplateArgument::Type && argument.getAsType()->isFunctionType();
         });
}

// A callable comes as the parameter `F f`, `F &f` or `F &&f` of a template, or is kept in a class that is
// called.
bool mayTakeCallable(const FunctionDecl *function) {
  if (function->getOverloadedOperator() == OO_Call || isForSignature(function))
    return true;
  return function->getDescribedFunctionTemplate() &&
         llvm::any_of(function->parameters(), [](const ParmVarDecl *parameter) {
           return parameter->getType().getNonReferenceType()->isTemplateTypeParmType();
         });
}

} // namespace

bool isDeviceCode(const Decl *decl) {
  const FunctionDecl *function = decl->getAsFunction();
  return function && (function->hasAttr<CUDAGlobalAttr>() ||
                      (function->hasAttr<CUDADeviceAttr>() && !function->hasAttr<CUDAHostAttr>()));
}

bool callsBack(const Decl *decl) {
  const FunctionDecl *function = decl->getAsFunction();
  return function && function->isTemplated() && isOfStandardLibrary(function) && mayTakeCallable(function);
}

SourceFiles::SourceFiles(const ASTContext &context, std::function<bool(const std::string &)> isProjectFile)
    : sources(context.getSourceManager()), language(context.getLangOpts()),
      isProjectFile(std::move(isProjectFile)) {}

std::string absolutePath(FileManager &files, llvm::StringRef written) {
  llvm::SmallString<256> path(written);
  files.makeAbsolutePath(path);
  llvm::SmallString<256> plain(path);
  llvm::sys::path::remove_dots(plain, /*remove_dot_dot=*/true);
  // `link/../x` is not `x` when the link leads elsewhere (/lib -> /usr/lib).
  if (path.str().contains("..") && !llvm::sys::fs::exists(plain))
    if (llvm::SmallString<256> real; !llvm::sys::fs::real_path(path, real))
      return real.str().str();
  return plain.str().str();
}

const SourceFiles::File &SourceFiles::file(FileID id) {
  auto [place, isNew] = files.try_emplace(id);
  if (!isNew)
    return place->second;
  File result;
  if (OptionalFileEntryRef entry = sources.getFileEntryRefForID(id)) {
    result.path = Name(absolutePath(sources.getFileManager(), entry->getName()));
    result.inProject = isProjectFile(result.path.str());
  }
  return files[id] = result;
}

bool SourceFiles::inProject(SourceLocation location) {
  if (location.isInvalid())
    return false;
  return file(sources.getFileID(sources.getExpansionLoc(location))).inProject;
}

Name SourceFiles::path(FileID id) { return file(id).path; }

bool SourceFiles::inMacroBody(SourceLocation location) const {
  return sources.isMacroBodyExpansion(location);
}

bool SourceFiles::inMacroArgument(SourceLocation location) const {
  return sources.isMacroArgExpansion(location);
}

SourceRange SourceFiles::fileRange(SourceRange range) const {
  if (range.isInvalid())
    return {};
  SourceLocation begin = sources.getFileLoc(range.getBegin());
  SourceLocation end = sources.getFileLoc(range.getEnd());
  if (range.getEnd().isMacroID() && end == sources.getExpansionLoc(range.getEnd()))
    end = sources.getExpansionRange(range.getEnd()).getEnd();
  if (sources.getFileID(begin) == sources.getFileID(end) && begin <= end)
    return {begin, end};
  // The range begins in a macro argument and ends in the macro, or the reverse.
  begin = sources.getExpansionLoc(range.getBegin());
  end = sources.getExpansionRange(range.getEnd()).getEnd();
  if (sources.getFileID(begin) == sources.getFileID(end) && begin <= end)
    return {begin, end};
  return {begin, begin};
}

Location SourceFiles::range(SourceRange written) {
  SourceRange range = fileRange(written);
  if (range.isInvalid())
    return {};
  auto [fileId, beginOffset] = sources.getDecomposedLoc(range.getBegin());
  unsigned endOffset =
      sources.getFileOffset(range.getEnd()) + Lexer::MeasureTokenLength(range.getEnd(), sources, language);
  Location result;
  result.file = path(fileId);
  result.line = sources.getLineNumber(fileId, beginOffset);
  result.column = sources.getColumnNumber(fileId, beginOffset);
  result.endLine = sources.getLineNumber(fileId, endOffset);
  result.endColumn = sources.getColumnNumber(fileId, endOffset);
  return result;
}

Name SourceFiles::text(SourceRange written) {
  constexpr std::size_t limit = 60;
  SourceRange range = fileRange(written);
  if (range.isInvalid())
    return {};
  llvm::StringRef source = Lexer::getSourceText(CharSourceRange::getTokenRange(range), sources, language);
  if (source == ":") // where clang puts the implicit element of a range-based for
    return {};
  std::string text;
  for (char c : source) {
    bool isSpace = llvm::isSpace(c);
    if (isSpace && (text.empty() || text.back() == ' '))
      continue;
    text += isSpace ? ' ' : c;
    if (text.size() > limit) {
      text.resize(limit - 3);
      // Never cut a UTF-8 sequence in two.
      while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80)
        text.pop_back();
      if (!text.empty() && static_cast<unsigned char>(text.back()) >= 0xC0)
        text.pop_back();
      text += "...";
      break;
    }
  }
  return Name(text);
}

} // namespace devicetidy::frontend
