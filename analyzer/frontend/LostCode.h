//===- LostCode.h - what a function says that clang did not keep -*- C++ -*-===//
//
// clang keeps most of what it cannot make sense of: as RecoveryExpr, as expressions of a dependent type, as
// variables without an initialiser. The rest (a statement of an unknown namespace, the arguments of a call
// one of which is wrong) is in the text alone. Nothing is concluded from such text but that the names in it
// may mean what they mean around it, so what they name may have changed.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "clang/AST/ASTContext.h"
#include "clang/AST/Decl.h"

#include <vector>

namespace devicetidy::frontend {

/// Text that the preprocessor left out: begin and end offsets in a file.
struct SkippedText {
  clang::FileID file;
  unsigned begin = 0, end = 0;
};

/// One word of the text that no node of the tree stands for.
struct LostWord {
  enum Kind : std::uint8_t {
    Name,  ///< of `decl`: a variable, a field or function of the class, a function
    Self,  ///< `this`
    Leave, ///< a `return` or `throw` that is a statement of its own, in a block that clang kept
  };
  Kind kind = Name;
  unsigned offset = 0;
  const clang::NamedDecl *decl = nullptr;
};

struct LostCode {
  std::vector<LostWord> words; ///< in the order of the text
  clang::FileID file;
  /// Control may leave lost code on some paths only (`if (lost) return;`), or the text has no place: the rest
  /// of the function cannot be told.
  bool isOpen = false;
  bool lostInitializers = false; ///< of the members of a constructor
};

/// Compares the text of `function`, which has a body, with its tree.
LostCode findLostCode(clang::ASTContext &context, const clang::FunctionDecl *function,
                      const std::vector<SkippedText> &skipped);

} // namespace devicetidy::frontend
