#include "analyzer/solve/engine/ProcessStates.h"

namespace devicetidy {

// Is it no variable of the program, but what the analysis notes of the process?
bool ProcessStates::isOfProcess(RootId root) const {
  const Term origin = machine.memory.info(root).origin;
  const auto id = origin && origin->args.size() == 1 ? textOf(origin->args.front()) : std::nullopt;
  return id && !machine.program.globals.count(*id) && !machine.memory.info(root).isFlag;
}

void ProcessStates::keep(Name file, const Row &before, Row &row) {
  if (!machine.program.imports.count(file))
    return;
  Change change;
  change.file = file;
  Store::forEachDifference(RootKind::Global, before.store, row.store,
                           [&](RootId root, const Value &, const Value &after) {
                             if (isOfProcess(root))
                               change.values[root] = after;
                           });
  if (row.currentDevice != before.currentDevice)
    change.currentDevice = row.currentDevice;
  for (const auto &[root, value] : change.values)
    row.store.set(root, before.store.get(root));
  row.currentDevice = before.currentDevice;
  if (!change.values.empty() || change.currentDevice)
    changes.push_back(std::move(change));
}

void ProcessStates::enter(Row &row, const Row &start, Name file) {
  if (changes.empty())
    return;
  const std::set<Name> &files = importedBy(file);
  Row entered = row;
  for (const Change &change : changes) {
    if (!files.count(change.file))
      continue;
    for (const auto &[root, value] : change.values)
      if (row.store.get(root) == start.store.get(root))
        entered.store.set(root, value);
    if (change.currentDevice && row.currentDevice == start.currentDevice)
      entered.currentDevice = change.currentDevice;
  }
  row = std::move(entered);
}

// What Python runs before a module of a package: the __init__.py beside it, and those above.
static std::vector<Name> packagesOf(Name file) {
  std::vector<Name> packages;
  std::string_view folder = file.view();
  for (auto end = folder.rfind('/'); end != std::string_view::npos; end = folder.rfind('/')) {
    folder = folder.substr(0, end);
    packages.emplace_back(std::string(folder) + "/__init__.py");
  }
  return packages;
}

// The files whose code has run when something of `file` runs, with itself.
const std::set<Name> &ProcessStates::importedBy(Name file) {
  const auto [entry, isNew] = imported.try_emplace(file);
  std::set<Name> &files = entry->second;
  if (!isNew)
    return files;
  std::vector<Name> open{file};
  while (!open.empty()) {
    const Name each = open.back();
    open.pop_back();
    if (!files.insert(each).second)
      continue;
    const auto found = machine.program.imports.find(each);
    if (found == machine.program.imports.end())
      continue;
    open.insert(open.end(), found->second.begin(), found->second.end());
    for (const Name package : packagesOf(each))
      if (machine.program.imports.count(package))
        open.push_back(package);
  }
  return files;
}

} // namespace devicetidy
