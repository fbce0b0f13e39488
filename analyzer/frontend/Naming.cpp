#include "analyzer/frontend/Naming.h"

#include "clang/AST/DeclTemplate.h"
#include "clang/AST/LambdaCapture.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Index/USRGeneration.h"
#include "llvm/Support/raw_ostream.h"

#include <vector>

namespace devicetidy::frontend {

using namespace clang;

Name captureName(const CXXRecordDecl *lambda, const ValueDecl *variable) {
  const std::string name = variable->getNameAsString();
  int before = 0;
  for (const LambdaCapture &capture : lambda->captures()) {
    if (!capture.capturesVariable())
      continue;
    if (capture.getCapturedVar() == variable)
      break;
    before += capture.getCapturedVar()->getNameAsString() == name;
  }
  return before ? Name(name + "#" + std::to_string(before)) : Name(name);
}

const CXXRecordDecl *lambdaOf(const Decl *function) {
  const auto *method = dyn_cast_or_null<CXXMethodDecl>(function);
  if (!method || !method->getParent()->isLambda() || method->getOverloadedOperator() != OO_Call)
    return nullptr;
  return method->getParent();
}

const FunctionDecl *enclosingFunction(const Decl *decl) {
  for (const DeclContext *context = decl->getDeclContext(); context; context = context->getParent())
    if (const auto *function = dyn_cast<FunctionDecl>(context))
      return function;
  return nullptr;
}

std::string Naming::component(const NamedDecl *decl) {
  if (const auto *constructor = dyn_cast<CXXConstructorDecl>(decl))
    return component(constructor->getParent());
  if (const auto *destructor = dyn_cast<CXXDestructorDecl>(decl))
    return "~" + component(destructor->getParent());
  if (const auto *tag = dyn_cast<TagDecl>(decl)) {
    if (const auto *record = dyn_cast<CXXRecordDecl>(tag); record && record->isLambda())
      return "lambda";
    if (!tag->getIdentifier()) {
      const TypedefNameDecl *alias = tag->getTypedefNameForAnonDecl();
      return alias ? alias->getNameAsString() : "(anonymous)";
    }
  }
  return decl->getDeclName().getAsString();
}

Name Naming::qualified(const NamedDecl *decl) {
  decl = cast<NamedDecl>(decl->getCanonicalDecl());
  auto found = names.find(decl);
  if (found != names.end())
    return found->second;
  std::string text;
  if (const CXXRecordDecl *lambda = lambdaOf(decl)) {
    const FunctionDecl *enclosing = enclosingFunction(lambda);
    text = enclosing ? qualified(enclosing).str() + "::lambda" : "lambda";
    return names[decl] = Name(text);
  }
  std::vector<std::string> parts{component(decl)};
  const DeclContext *parent = decl->getDeclContext();
  // Enumerators are known by the scope of their enumeration: at::kCUDA, but c10::DeviceType::CUDA.
  for (; parent && !parent->isTranslationUnit(); parent = parent->getParent()) {
    if (const auto *space = dyn_cast<NamespaceDecl>(parent)) {
      if (!space->isInline() && !space->isAnonymousNamespace())
        parts.push_back(space->getNameAsString());
    } else if (const auto *tag = dyn_cast<TagDecl>(parent)) {
      parts.push_back(component(tag));
    } else if (isa<FunctionDecl>(parent)) {
      break;
    }
  }
  for (auto part = parts.rbegin(); part != parts.rend(); ++part)
    text += (text.empty() ? "" : "::") + *part;
  return names[decl] = Name(text);
}

std::string Naming::makeId(const NamedDecl *decl) {
  llvm::SmallString<128> usr;
  std::string text;
  if (!index::generateUSRForDecl(decl, usr))
    text = usr.str().str();
  const SourceManager &sources = context.getSourceManager();
  const Decl *local = decl;
  if (const auto *method = dyn_cast<CXXMethodDecl>(decl))
    local = method->getParent();
  const FunctionDecl *enclosing = enclosingFunction(local);
  const CXXRecordDecl *lambda = lambdaOf(decl);
  if (enclosing || lambda || text.empty()) {
    SourceLocation place = local->getLocation();
    text += "@" + std::to_string(sources.getFileOffset(sources.getExpansionLoc(place)));
    if (place.isMacroID())
      text += "." + std::to_string(sources.getFileOffset(sources.getSpellingLoc(place)));
    if (enclosing)
      return text + "@" + id(enclosing).str();
  }
  bool isMain = isa<FunctionDecl>(decl) && cast<FunctionDecl>(decl)->isMain();
  if (lambda || isMain || usr.empty() || !decl->hasExternalFormalLinkage()) {
    FileID file = sources.getFileID(sources.getExpansionLoc(decl->getLocation()));
    text += "@" + source.path(file).str();
  }
  return text;
}

Name Naming::id(const NamedDecl *decl) {
  decl = cast<NamedDecl>(decl->getCanonicalDecl());
  auto found = ids.find(decl);
  if (found != ids.end())
    return found->second;
  std::string text = makeId(decl);
  Name result(text);
  // USRs of types such as closures are not unique as template arguments; tell the later ones apart.
  for (int i = 2; !owners.try_emplace(result, decl).second; ++i)
    result = Name(text + "#" + std::to_string(i));
  return ids[decl] = result;
}

} // namespace devicetidy::frontend
