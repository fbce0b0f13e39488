//===- SourceFiles.h - places and text of source code -----------*- C++ -*-===//
//
// Converts the source locations of clang to locations of facts, and reads the text at them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Location.h"

#include "clang/AST/ASTContext.h"
#include "clang/Basic/FileManager.h"
#include "llvm/ADT/DenseMap.h"

#include <functional>
#include <string>

namespace devicetidy::frontend {

/// The path without "." and "..".
std::string absolutePath(clang::FileManager &files, llvm::StringRef written);

/// Is this code for a GPU alone (CUDA's __global__ and __device__)? Its bodies do not move tensors,
/// and need more of CUDA than the replacement headers have.
bool isDeviceCode(const clang::Decl *decl);

/// Is this a template of the standard library, whatever its files and its helpers are called? It may call
/// what it is given, so only an instance of its body instantiates a generic lambda. Helpers stand in
/// namespace std, or in one with a name that is reserved for the library.
bool callsBack(const clang::Decl *decl);

/// Finds the place and the text of code in the files that the user wrote. Code from a macro is located at the
/// use of the macro, macro arguments where they are spelled.
class SourceFiles {
public:
  SourceFiles(const clang::ASTContext &context, std::function<bool(const std::string &)> isProjectFile);

  bool inProject(clang::SourceLocation location);
  bool inProject(const clang::Decl *decl) { return inProject(decl->getLocation()); }

  /// The whole range, end exclusive.
  Location range(clang::SourceRange range);
  /// From the first character of the token at `caret` to the end of the token at `end`.
  Location range(clang::SourceLocation caret, clang::SourceLocation end) { return range({caret, end}); }
  /// The token at `location`.
  Location token(clang::SourceLocation location) { return range({location, location}); }

  /// The source text of a range with white space collapsed, at most 60 characters.
  Name text(clang::SourceRange range);

  /// Absolute path without "." and "..".
  Name path(clang::FileID file);

  /// Does the text at `location` come from the body of a macro (not from an argument)?
  bool inMacroBody(clang::SourceLocation location) const;
  /// Is the text at `location` (part of) an argument of a macro?
  bool inMacroArgument(clang::SourceLocation location) const;

private:
  struct File {
    Name path;
    bool inProject = false;
  };
  const File &file(clang::FileID id);
  /// The range in one file, both ends at token starts; invalid where there is none.
  clang::SourceRange fileRange(clang::SourceRange range) const;

  const clang::SourceManager &sources;
  const clang::LangOptions &language;
  std::function<bool(const std::string &)> isProjectFile;
  llvm::DenseMap<clang::FileID, File> files;
};

} // namespace devicetidy::frontend
