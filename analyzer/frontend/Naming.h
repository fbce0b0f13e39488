//===- Naming.h - names and identities of declarations ----------*- C++ -*-===//
//
// The qualified names of declarations, and the ids by which units are linked.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Name.h"
#include "analyzer/frontend/SourceFiles.h"

#include "clang/AST/DeclCXX.h"
#include "llvm/ADT/APSInt.h"
#include "llvm/ADT/DenseMap.h"

#include <cstdint>
#include <string>
#include <unordered_map>

namespace devicetidy::frontend {

class Naming {
public:
  Naming(const clang::ASTContext &context, SourceFiles &source) : context(context), source(source) {}

  /// Qualified name without template arguments, inline and anonymous namespaces and enclosing functions.
  Name qualified(const clang::NamedDecl *decl);

  /// Identity of a function, variable or static member: the same in every translation unit that sees the
  /// entity.
  Name id(const clang::NamedDecl *decl);

private:
  std::string makeId(const clang::NamedDecl *decl);
  std::string component(const clang::NamedDecl *decl);

  const clang::ASTContext &context;
  SourceFiles &source;
  llvm::DenseMap<const clang::Decl *, Name> ids;
  llvm::DenseMap<const clang::Decl *, Name> names;
  std::unordered_map<Name, const clang::Decl *> owners;
};

/// The low 64 bits, sign extended where the number is signed.
inline std::int64_t toInt64(const llvm::APSInt &value) {
  return static_cast<std::int64_t>(value.extOrTrunc(64).getZExtValue());
}
inline std::int64_t toInt64(const llvm::APInt &value) {
  return static_cast<std::int64_t>(value.zextOrTrunc(64).getZExtValue());
}

/// The lambda's class when `function` is the call operator of a lambda, else null.
const clang::CXXRecordDecl *lambdaOf(const clang::Decl *function);

/// The name of the captured `variable` in a closure: its own name, made unique among the elements of a pack.
Name captureName(const clang::CXXRecordDecl *lambda, const clang::ValueDecl *variable);

/// Is `decl` a private or protected member?
inline bool isHidden(const clang::Decl *decl) {
  return decl->getAccess() == clang::AS_private || decl->getAccess() == clang::AS_protected;
}

/// The function whose body holds `decl`, or null.
const clang::FunctionDecl *enclosingFunction(const clang::Decl *decl);

} // namespace devicetidy::frontend
