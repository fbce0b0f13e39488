//===- PythonFiles.h - the facts behind open Python files -------*- C++ -*-===//
//
// Open documents are parsed with the text of the buffers, and what they import with them. Syntax trees are
// kept, so the interpreter reads only what has changed.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/lsp/ProjectUnits.h"
#include "analyzer/python/Reader.h"

namespace devicetidy::lsp {

class PythonFiles : public ProjectUnits {
public:
  explicit PythonFiles(std::string interpreter) : interpreter(std::move(interpreter)) {}

  bool update(const DocumentMap &documents, const std::set<std::string> &own,
              const std::atomic<bool> &stop) override;
  bool knows(const std::string &file) override { return state.count(file) != 0; }
  void refresh() override { state.clear(); }
  bool isChangedOnDisk(const DocumentMap &documents) const override;
  const std::vector<Unit> &all() const override { return units; }
  std::vector<std::size_t> roots() const override;
  const driver::LinkMap &links() const override { return noLinks; }
  std::set<Name> rootFiles() const override;
  bool isMainFile(const std::string &file) const override { return state.count(file) != 0; }
  bool isProject(const std::string &file) const override { return state.count(file) != 0; }
  std::string whyLeftOut(const std::string &file) const override;
  std::string problem() const override { return failure; }

private:
  /// What the texts of files were: a number for each.
  using State = std::map<std::string, std::uint64_t>;
  State stateOf(const DocumentMap &documents) const;

  const std::string interpreter;
  const driver::LinkMap noLinks;
  python::Reader reader;
  std::vector<Unit> units; ///< of documents, of what they import, and models of libraries
  std::set<std::string> documentsRead;
  State state; ///< of all files of the units
  std::string failure;
};

} // namespace devicetidy::lsp
