#include "analyzer/lsp/WarmPreambles.h"

#include "analyzer/frontend/IncludeScan.h"

#include "llvm/Support/FileSystem.h"

namespace devicetidy::lsp {

const frontend::Preamble *WarmPreambles::preambleFor(const driver::CompileCommand &command,
                                                     const frontend::UnsavedFiles &unsaved) {
  std::vector<std::string> flags = command.arguments;
  flags.pop_back(); // the source file comes last
  Key key{command.directory, flags};
  const frontend::LeadingIncludes leading = frontend::leadingIncludes(
      command.file, {command.directory, std::move(flags), options.isProjectFile, &unsaved});
  for (const frontend::LeadingInclude &header : leading.headers)
    key.second.insert(key.second.end(), {"--", header.name, std::to_string(header.macrosBefore)});
  key.second.insert(key.second.end(), leading.macros.begin(), leading.macros.end());
  const auto [entry, isNew] = kept.try_emplace(std::move(key));
  Kept &found = entry->second;
  const bool isGone = found.preamble && !(llvm::sys::fs::exists(found.preamble->binaryFile) &&
                                          llvm::sys::fs::exists(found.preamble->headerFile));
  if (isNew || isGone) { // the cache may have been cleared
    found.states = std::make_unique<cache::FileStates>();
    found.owner = std::make_unique<driver::Preambles>(store, *found.states, options, 1,
                                                      driver::MakePreamble::Always, &unsaved);
    found.owner->onMaking(making);
    found.preamble = found.owner->choose({&command}).front();
  }
  return found.preamble;
}

} // namespace devicetidy::lsp
