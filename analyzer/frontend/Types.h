//===- Types.h - from clang types to types of a unit ------------*- C++ -*-===//
//
// Adds the types that functions use to the unit.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"
#include "analyzer/frontend/Naming.h"

#include "clang/AST/ASTContext.h"
#include "clang/AST/PrettyPrinter.h"
#include "clang/Basic/SourceManager.h"
#include "llvm/ADT/DenseMap.h"

#include <vector>

namespace devicetidy::frontend {

class Types {
public:
  Types(clang::ASTContext &context, SourceFiles &source, Naming &naming, std::map<Name, Type> &types);

  /// Id of the canonical type without reference and top-level const; makes its entry on first use.
  Name id(clang::QualType type);
  Name id(const clang::TagDecl *tag);

  /// Type arguments of a template argument list, packs flattened.
  std::vector<Name> typeArguments(llvm::ArrayRef<clang::TemplateArgument> arguments);

  /// The integral arguments, packs flattened.
  static std::vector<std::int64_t> numberArguments(llvm::ArrayRef<clang::TemplateArgument> arguments);

  /// Project records that got an entry; their constructors and methods are declared in the unit afterwards.
  std::vector<const clang::CXXRecordDecl *> takeNewProjectRecords();

  static bool isProjectRecord(const clang::CXXRecordDecl *record, SourceFiles &source);

private:
  void fill(Type &entry, clang::QualType type);
  void fillRecord(Type &entry, const clang::CXXRecordDecl *record);
  void addFields(Type &entry, const clang::RecordDecl *record);
  bool hasPlainFields(const clang::CXXRecordDecl *record) const;

  clang::ASTContext &context;
  SourceFiles &source;
  Naming &naming;
  std::map<Name, Type> &types;
  /// Closures and unnamed types are spelled with the absolute path of their file.
  struct AbsolutePaths : clang::PrintingCallbacks {
    explicit AbsolutePaths(clang::ASTContext &context) : context(context) {}
    std::string remapPath(llvm::StringRef path) const override {
      return absolutePath(context.getSourceManager().getFileManager(), path);
    }
    clang::ASTContext &context;
  } paths;
  clang::PrintingPolicy policy;
  llvm::DenseMap<const clang::Type *, Name> ids;
  std::vector<const clang::CXXRecordDecl *> newProjectRecords;
};

} // namespace devicetidy::frontend
