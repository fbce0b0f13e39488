//===- Unregistered.h - members that Module::to leaves behind ---*- C++ -*-===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// How a module that was moved holds another without having registered it: where the held module was made in
/// the holder's construction, then the member (StepKind::Member). Empty when nothing holds it like that. The
/// holder may be an object of a caller that the row does not see.
class UnregisteredHolders : public OwnerObserver {
public:
  explicit UnregisteredHolders(const Machine &machine) : machine(machine) {}
  std::vector<Step> historyOf(const Frame &frame, const Row &row, RootId module) const override;

private:
  const Machine &machine;
};

/// Conflicts whose cause is a member that Module::to leaves behind are told of the member, not of the
/// operation.
void findUnregistered(const Machine &machine, Solution &solution);

} // namespace devicetidy
