//===- Compat.h - differences between LLVM releases -------------*- C++ -*-===//
//
// Everything that is spelled differently in the clang APIs of LLVM 19 and 22. The rest of the frontend has no
// version checks.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "clang/AST/DeclCXX.h"
#include "clang/AST/PrettyPrinter.h"
#include "clang/Basic/Version.h"
#include "clang/Sema/Sema.h"

#include "llvm/ADT/SmallVector.h"

namespace devicetidy::frontend::compat {

/// Prints `std::string`'s template as `std::basic_string`, not `std::__cxx11::basic_string`.
inline void dropInlineNamespaces(clang::PrintingPolicy &policy) {
#if CLANG_VERSION_MAJOR >= 21
  using Mode = clang::PrintingPolicy::SuppressInlineNamespaceMode;
  policy.SuppressInlineNamespace = static_cast<unsigned>(Mode::All);
#else
  policy.SuppressInlineNamespace = true;
#endif
}

/// The bindings of a structured binding, with the elements of a binding pack in place of the pack.
inline llvm::SmallVector<clang::BindingDecl *, 8> bindings(const clang::DecompositionDecl *decl) {
#if CLANG_VERSION_MAJOR >= 21
  auto all = decl->flat_bindings();
  return {all.begin(), all.end()};
#else
  return {decl->bindings().begin(), decl->bindings().end()};
#endif
}

inline clang::QualType typeOfTag(const clang::ASTContext &context, const clang::TagDecl *tag) {
#if CLANG_VERSION_MAJOR >= 22
  return context.getCanonicalTagType(tag);
#else
  return context.getTypeDeclType(tag);
#endif
}

inline void addExternalSource(clang::Sema &sema, clang::ExternalSemaSource *source) {
#if CLANG_VERSION_MAJOR >= 21
  sema.addExternalSource(llvm::IntrusiveRefCntPtr<clang::ExternalSemaSource>(source));
#else
  sema.addExternalSource(source);
#endif
}

} // namespace devicetidy::frontend::compat
