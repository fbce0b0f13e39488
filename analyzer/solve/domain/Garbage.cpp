//===- Garbage.cpp - what a row no longer reaches ---===//
#include "analyzer/solve/domain/Memory.h"

#include <unordered_set>

namespace devicetidy {

void Memory::dropLocals(Row &row, unsigned depth) const {
  std::vector<RootId> dead;
  row.store.forEach(RootKind::Local, [&](RootId root, const Value &) {
    if (info(root).depth >= depth)
      dead.push_back(root);
  });
  for (RootId root : dead)
    row.store.erase(root);
}

void Memory::collectGarbage(Row &row, const Store *callers) const {
  if (!row.store.mayHoldGarbage())
    return;
  static const Store none;
  const Store &before = callers ? *callers : none;
  std::unordered_set<RootId> unreached;
  Store::forEachDifference(RootKind::Heap, before, row.store,
                           [&](RootId root, const Value &old, const Value &value) {
                             if (value && !old)
                               unreached.insert(root);
                           });
  if (unreached.empty()) {
    row.store.noteCollected();
    return;
  }
  std::vector<Value> work; // what is as the callers left it leads to nothing new
  Store::forEachDifference(before, row.store, [&](RootId root, const Value &, const Value &value) {
    if (value && marks::include(value->marks, marks::address) && !unreached.count(root))
      work.push_back(value);
  });
  bool heldByRegister = false; // what a register holds is lost without a change of the store
  for (const Value &value : row.registers)
    if (value && marks::include(value->marks, marks::address)) {
      work.push_back(value);
      heldByRegister = true;
    }
  while (!work.empty()) {
    Value value = std::move(work.back());
    work.pop_back();
    forEachAddress(value, [&](const Address &address) {
      if (unreached.erase(address.root))
        work.push_back(row.store.get(address.root));
    });
  }
  for (RootId root : unreached)
    row.store.erase(root);
  if (!heldByRegister)
    row.store.noteCollected();
}

} // namespace devicetidy
