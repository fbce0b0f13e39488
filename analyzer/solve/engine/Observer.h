//===- Observer.h - what is told about a run --------------------*- C++ -*-===//
//
// Questions of checks and of the editor are answered by objects that watch the interpreter. It knows them by
// these interfaces alone.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/domain/Value.h"
#include "analyzer/solve/solution/Step.h"

#include <vector>

namespace devicetidy {

struct Call;
struct Fact;
struct Frame;
struct Row;

/// Is told of every call and construction of the program.
class CallObserver {
public:
  virtual ~CallObserver() = default;
  virtual void enter(Call &call) = 0;
  /// The innermost call that was entered has ended.
  virtual void leave() = 0;
};

/// Tells `observer`, which may be null, of one call.
class ObservedCall {
public:
  ObservedCall(CallObserver *observer, Call &call) : observer(observer) {
    if (observer)
      observer->enter(call);
  }
  ~ObservedCall() {
    if (observer)
      observer->leave();
  }
  ObservedCall(const ObservedCall &) = delete;
  ObservedCall &operator=(const ObservedCall &) = delete;

private:
  CallObserver *observer;
};

/// Is told of every fact of the program that is run.
class FactObserver {
public:
  virtual ~FactObserver() = default;
  /// A run of a function begins; its parameters are bound.
  virtual void begin(const Frame &frame, const Row &row) = 0;
  /// `row` is one of those that `fact` leaves, or the one it was given where it leaves none.
  virtual void step(const Frame &frame, const Fact &fact, const Row &row) = 0;
};

/// Adds to the history of an operand that is a parameter of a module.
class OwnerObserver {
public:
  virtual ~OwnerObserver() = default;
  /// How `module` came to be where it is; empty when there is nothing to say.
  virtual std::vector<Step> historyOf(const Frame &frame, const Row &row, RootId module) const = 0;
};

} // namespace devicetidy
