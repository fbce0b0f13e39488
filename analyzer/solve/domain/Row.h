//===- Row.h - one consistent state of the program --------------*- C++ -*-===//
//
// The analysis keeps a few rows per program point instead of one set of devices per variable: a row says what
// all variables hold together, so "both moved" and "none moved" never mix. A row carries the run-time
// conditions it was reached under; two `if (cuda)` correlate because the second finds the condition already
// known.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/domain/Store.h"

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace devicetidy {

/// A module from outside the analysed code, moved inside it: everything below `origin` now lives on
/// `placement`.
struct ModuleMove {
  Term origin;
  Placement placement;
  History history;
};

/// What a condition came out as (bools: 0 and 1).
using Condition = std::pair<Term, std::int64_t>;

struct Row {
  Store store;
  std::vector<Value> registers;
  std::vector<Condition> known; ///< conditions this row was reached under
  /// Pairs of conditions that are not both so: after `if (a && b) x = ...` the other rows are one, but know
  /// "not both".
  std::vector<std::pair<Condition, Condition>> excluded;
  std::vector<std::pair<Term, Placement>> aliases; ///< device symbols that a condition has pinned down
  std::vector<ModuleMove> moves;
  /// Loops that are run once for "any iteration": loop head -> index of the iteration. What is made inside
  /// such a loop is an array over that index. Rows share it until one of them comes to another loop.
  using Iterations = std::vector<std::pair<std::int32_t, Term>>;
  std::shared_ptr<const Iterations> iterations;
  bool guessed = false;                    ///< rests on a guess that is not among `known` any more
  bool bounded = false;                    ///< the same of what a bound has left out
  bool isOtherWay = false;                 ///< see Machine::otherwise
  bool failed = false;                     ///< a device conflict has thrown on this row
  bool expressionEnded = false;            ///< the registers are dead and go with the next write
  Term currentDevice = currentCudaIndex(); ///< what `kCUDA` without an index means here

  /// Index of the iteration of the loop with this head, null when its iterations are run one by one.
  Term iterationOf(std::int32_t loopHead) const;
  void setIteration(std::int32_t loopHead, Term iteration);
  /// `term` with what this row knows put in.
  Term resolve(Term term) const;
  Placement resolve(Placement placement) const;
  /// The number that `value` is here; none when it is no scalar, or can be several.
  std::optional<std::int64_t> numberOf(const Value &value) const;
  /// `term` with what is known to equal a number, or the current GPU, put in for it, which resolve() leaves
  /// alone: loop variables in their first iteration above all, the rank of the process on its machine. For
  /// questions only: what is kept stands for any iteration.
  Term pinned(Term term) const;
  /// Forgets the conditions that say something of what `changed` is true for.
  void forgetConditions(const std::function<bool(Term)> &changed);
  /// Adds `term == number`; false when the row knows otherwise.
  bool assume(Term term, std::int64_t number);
  bool assumeDevice(const Placement &device, bool isOnGpu);
  /// Adds a condition that is so, and nothing that follows from it.
  void learn(const Condition &condition);

  std::uint64_t digest() const;
  std::uint64_t stateDigest() const; ///< without conditions
  std::uint64_t placeDigest() const; ///< the same, with all scalars taken as equal
};

/// Identifies a device in a condition term, so that `a.device() == b.device()` is a stable condition.
Term deviceTerm(const Placement &placement);

/// The index of the CUDA device that the device symbol `device` may be; -1 when that is the CPU.
Term indexOf(Term device);
/// The device symbol `condition` asks for an index ("-1 < index"), which the CPU has not; null when it asks
/// something else.
Term deviceWithIndex(Term condition);

/// Makes at most `cap` rows of `rows`: equal rows merge and keep the conditions they share; past `softCap`
/// rows without a GPU and rows that rest on a bound go, where there are others, and rows that differ only in
/// scalars merge; past `cap` those stay that show the most of what there is, that which shows most first.
/// Returns how many were left out then.
std::size_t mergeRows(std::vector<Row> &rows, std::size_t softCap, std::size_t cap, Term phi);
/// Makes one of rows that differ in a single list, which in one has all that it has in the other: an element
/// was left out. In a comprehension that is any list (each element would double the rows); in other loops one
/// of those that they make, for it stands for those of all iterations.
void mergeLeftOut(std::vector<Row> &rows, bool isComprehension, Term phi);
/// What is so on both ways. Objects that only one of the two has stay where what is joined leads to them.
Row joinRows(const Row &a, const Row &b, Term phi);

} // namespace devicetidy
