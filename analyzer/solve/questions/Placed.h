//===- Placed.h - where the expressions of a file live ----------*- C++ -*-===//
//
// An editor asks of any variable where it lives. The answer is taken down while the program is run, for the
// files that are asked for: what the operands of each fact hold after it, in every row.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace devicetidy {

class PlacedExpressions : public FactObserver {
public:
  /// Takes down what is in `files`.
  PlacedExpressions(Machine &machine, const std::set<Name> &files) : machine(machine), files(files) {}

  /// The parameters that a run of `frame` begins with.
  void begin(const Frame &frame, const Row &row) override;
  /// The operands of `fact`, and the variables whose declaration it ends, where control is after it; `row` is
  /// one of the rows there.
  void step(const Frame &frame, const Fact &fact, const Row &row) override;

  /// All that was taken down, by place and device. Leaves nothing behind.
  std::vector<PlacedExpression> take();

private:
  /// A range; locations are equal when they begin together.
  using Place = std::tuple<Name, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
  using ByDevice = std::map<std::string, PlacedExpression>;
  enum class Role : std::uint8_t { Use, Declaration, Member };

  static Place placeOf(const Location &where);
  void noteLocal(const Frame &frame, std::uint32_t local, const Row &row);
  /// `value` was read from `place`, where it has one.
  void note(const Location &where, Name text, const Value &value, Address place, const Row &row, Role role);
  void noteModule(const PlacedExpression &what, const Address &module, const Row &row);
  /// The declarations of the members of a record.
  void noteMembers(const Value &record, const Address &place, const Row &row);
  void noteGlobal(const Fact &fact, const Row &row);
  const std::vector<Field> &membersOf(Name type);
  void add(const PlacedExpression &what, const Placement &placement, const History &history);
  /// Finds the locals that each full expression of `function` declares.
  void findDeclarations(const Function &function);

  Machine &machine;
  const std::set<Name> &files;
  std::map<Place, ByDevice> found;
  std::set<const Function *> scanned;
  std::map<const Fact *, std::vector<std::uint32_t>> declared; ///< at the EndStatement of the declaration
  std::map<Name, std::vector<Field>> members; ///< of a class, those that are declared in `files`
  std::map<RootId, Name> globals;             ///< ids of those that were met
  std::set<Place> others;                     ///< what lives on no device
};

} // namespace devicetidy
