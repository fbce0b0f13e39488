//===- UnitGraph.h - which units use or exclude each other ------*- C++ -*-===//
//
// The relations between units that decide which of them can form a program.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"

#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace devicetidy::driver {

using UnitIndex = std::size_t;
using UnitGroup = std::set<UnitIndex>;

/// What linking has to know about each unit that is linked, and no module: what it defines, what it uses, and
/// with which other units it cannot be linked.
class UnitGraph {
public:
  explicit UnitGraph(const std::vector<Unit> &units);
  UnitGraph(const UnitGraph &) = delete;
  UnitGraph &operator=(const UnitGraph &) = delete;

  std::size_t size() const { return units.size(); }
  bool hasMain(UnitIndex unit) const { return isMain[unit]; }

  /// Units that define one name differently: in different places, or at one place of a source that is
  /// compiled in several ways. Mains are not counted, see hasMain.
  const std::unordered_set<UnitIndex> &rivals(UnitIndex unit) const { return relations[unit].rivals; }

  /// Can all units be linked together?
  bool isOneProgram() const;

  /// The units that define what `unit` uses, among those that `isCandidate` takes. Of several that define one
  /// name the nearest: built for the same target, else with the longest common beginning of their paths; none
  /// when two different ones are as near.
  template <typename Predicate> UnitGroup needs(UnitIndex unit, Predicate isCandidate) const {
    UnitGroup result;
    for (UnitIndex each : relations[unit].onlyDefiners)
      if (isCandidate(each))
        result.insert(each);
    for (const std::vector<UnitIndex> *definers : relations[unit].choices)
      if (const UnitIndex each = nearest(unit, *definers, isCandidate); each != units.size())
        result.insert(each);
    return result;
  }

  /// The units that use what `unit` defines.
  const UnitGroup &users(UnitIndex unit) const { return relations[unit].users; }

  /// The units built for the same target, by the folder CMake or Meson keep its objects in.
  std::vector<UnitIndex> sameTarget(UnitIndex unit) const;

private:
  struct Definition {
    UnitIndex unit;
    Location where; ///< a function in a header has one place in all units
  };
  struct Relations {
    UnitGroup onlyDefiners, users;
    std::vector<const std::vector<UnitIndex> *> choices; ///< where several units define what is used
    std::unordered_set<UnitIndex> rivals;
    std::set<std::string> targets;
  };
  using Definitions = std::unordered_map<Name, std::vector<Definition>>;

  void addDefinitions(UnitIndex index, Definitions &definitions);
  void addRivals(const std::vector<Definition> &definers);
  void addVariants();
  void addNeeds(UnitIndex index);
  bool sharesTarget(UnitIndex a, UnitIndex b) const;
  std::ptrdiff_t commonBeginning(UnitIndex a, UnitIndex b) const;

  /// size() when none can be chosen.
  template <typename Predicate>
  UnitIndex nearest(UnitIndex user, const std::vector<UnitIndex> &definers, Predicate isCandidate) const {
    const UnitIndex none = units.size();
    UnitIndex best = none;
    std::pair<bool, std::ptrdiff_t> bestNearness;
    bool isAmbiguous = false;
    for (UnitIndex each : definers) {
      if (!isCandidate(each))
        continue;
      const std::pair<bool, std::ptrdiff_t> nearness{sharesTarget(user, each), commonBeginning(user, each)};
      if (best == none || nearness > bestNearness) {
        best = each;
        bestNearness = nearness;
        isAmbiguous = false;
      } else if (nearness == bestNearness && relations[best].rivals.count(each)) {
        isAmbiguous = true;
      }
    }
    return isAmbiguous ? none : best;
  }

  const std::vector<Unit> &units;
  std::unordered_map<Name, std::vector<UnitIndex>> definers;
  std::vector<Relations> relations;
  std::vector<bool> isMain;
  std::size_t mains = 0;
};

} // namespace devicetidy::driver
