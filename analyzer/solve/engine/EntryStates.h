//===- EntryStates.h - the states in which entries are called ---*- C++ -*-===//
//
// An entry is called by nobody in the program. What it then finds in globals, in its parameters and in its
// object is made here.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Machine.h"
#include "analyzer/solve/engine/ProcessStates.h"

namespace devicetidy {

class EntryStates {
public:
  /// Runs the initialisers of all globals.
  EntryStates(Machine &machine, const Usage &usage);

  /// Where `main` starts: every global as it was initialised. That of a script runs its module, and starts
  /// where this would.
  const Row &ofMain(const Function &main) const;
  /// Where other entries start: in a program that has run, so what is changed somewhere may have been.
  const Row &open() const { return running; }
  /// The object on which the methods of a class are called.
  Address object(Name className);
  std::vector<Name> constructorsOf(Name className) const;
  bool isOfLibraryModule(const Type &type) const;
  void addMade(Name className, Name id, std::vector<Row> &rows);
  /// What the constructors of a class leave, and its own functions that make one, one row for each way; empty
  /// when none has a body.
  std::vector<Row> construct(Name className);
  std::vector<Row> begun(Name className);
  /// Forgets what the fields of the object in `root` hold that `isChanged` names, and where its modules are
  /// that may have been handed out.
  void forget(Row &row, RootId root, const std::function<bool(Name)> &isChanged, bool handsOutModules);
  /// The same for all that anything but a constructor writes.
  void forgetWritten(Row &row, RootId root);
  /// Where a module in `root` lives is up to whoever holds it; other objects stay.
  void moveAsWhole(Row &row, RootId root);
  /// Makes the global `id` what its initialiser leaves.
  RootId reset(Row &row, Name id);
  /// Calls an entry. `call`: how often it was called before, for its parameters are others each time.
  Outcomes call(const Function &function, Row row, Address self = {}, unsigned call = 0);
  /// Calls a function with what its closure has captured; false where none is known.
  bool callClosure(const Function &function);

private:
  void runGlobals();
  void forgetChanged(Row &row);
  bool changesInside(Name type) const;
  Row bindParameters(const Function &function, Row row);
  void release(Row &row, RootId heap, Term origin);
  bool isMadeHereOnly(const std::vector<Name> &constructors) const;

  Machine &machine;
  const Usage &usage;
  ProcessStates processes;
  Row base, running;
  std::map<Name, Row> beforeModule; ///< what the module in a file starts with
};

} // namespace devicetidy
