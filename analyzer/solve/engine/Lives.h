//===- Lives.h - objects that are called more than once ---------*- C++ -*-===//
//
// A class of a library is used by somebody: an object is constructed, initialised, changed, used. The methods
// that make what the constructor left empty, or that are given a device, are taken to be called first, in the
// order of the class; then any public method may follow any other. What such an order shows is likely at
// most, for the program does not show that anybody calls in it. Functions that share globals live like the
// methods of a class: a C interface over a map of objects.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/EntryStates.h"
#include "analyzer/solve/engine/GlobalStates.h"
#include "analyzer/solve/engine/Leaves.h"

#include <functional>

namespace devicetidy {

class Lives {
public:
  Lives(Machine &machine, EntryStates &states, const Usage &usage)
      : machine(machine), states(states), usage(usage) {}
  /// Runs methods on the objects of their classes as other methods leave them: those of `entries`, and all
  /// public ones of a class whose constructors are not among what main leads to, `ofMain`. Only those are run
  /// that are `due`.
  void run(const std::vector<const Function *> &entries, const std::set<const Function *> &ofMain,
           const std::function<bool(const Function &)> &isDue);

private:
  /// An object at some time of its life.
  struct Life {
    Row row;
    std::vector<Name> called{}; ///< methods that brought it here, in order
    std::set<Term> left{};      ///< devices from which something in it went to the CPU
    bool isOther = false;       ///< the object is one that to() gave
    std::size_t number = 0;     ///< the same for equal times only; 0: has none yet
  };
  using Lived = std::vector<Life>;

  void runClass(Name className, std::vector<const Function *> entries);
  void runGlobals(const GlobalState &state);
  void forgetObject();
  /// Runs `entries` on an object that is a module, with its layers on several devices where its class allows
  /// it.
  void runSpread(Row row, const std::vector<const Function *> &entries);
  /// Runs `entries` and `methods` on `lives`, then the entries that read what one of them has changed.
  void follow(Lived lives, const std::vector<const Function *> &entries,
              const std::vector<const Function *> &methods);
  /// The object, or the globals as its fields.
  Value stateIn(const Row &row) const;
  Leaves leaves(const Row &row) const;
  bool isConstructedBy(const std::set<const Function *> &functions, Name className) const;
  std::vector<const Function *> publicMethods(Name className) const;
  Lived begin(Name className);
  Lived initialise(Lived lives, std::vector<const Function *> methods);
  /// Those that are set up best, at most as many as a class may have.
  Lived mostComplete(Lived lives);
  /// What `method` leaves of an object.
  const Lived &call(const Function &method, Life &life);
  Lived run(const Function &method, const Life &life);
  bool isCalledLater(const Function &method) const;
  bool isInitialised(const Function &method, const Life &before, const Life &after);
  void addCounts(const Row &before, const Row &after, std::set<Name> &counts) const;
  Value outsideNumber(Name field) const;
  bool handsOutModules(Name className) const;
  bool goOnWith(const Value &result, Row &row) const;
  bool isUsedAsMade(const Function &placer, const Lived &after) const;
  bool leadsToModule(Name type) const;
  /// The fields whose tensors, modules or devices are others than before, directly or by what they lead to.
  std::set<Name> changedFields(const Row &before, const Row &after) const;
  const std::set<Name> &mentionedIn(const Function &function);

  Machine &machine;
  EntryStates &states;
  const Usage &usage;
  Address object;                               ///< of the class at hand
  std::vector<std::pair<Name, RootId>> globals; ///< instead: those of the functions at hand
  std::map<Name, std::set<Name>> mentioned;     ///< fields and globals of a function, and of what it calls
  /// What methods left of the object at hand, by the number of the life that they were run on.
  std::map<std::pair<const Function *, std::size_t>, Lived> results;
  std::size_t numbered = 0; ///< how many lives have a number
  std::size_t factsRun = 0; ///< by all calls on the object at hand
};

} // namespace devicetidy
