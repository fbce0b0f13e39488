#include "analyzer/driver/Programs.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace devicetidy::driver {
namespace {

using UnitIndex = std::size_t;
using Group = std::set<UnitIndex>;

/// How long a common beginning two paths have.
std::ptrdiff_t sharedPrefix(const std::string &a, const std::string &b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

/// Types in unnamed namespaces may repeat from unit to unit.
bool isLocalToUnit(Name type) { return type.view().find("(anonymous") != std::string_view::npos; }

/// Which units call into which, and which exclude each other.
class LinkGraph {
public:
  explicit LinkGraph(const std::vector<Unit> &units)
      : units(units), neighbours(units.size()), rivals(units.size()), isMain(units.size()) {
    for (UnitIndex i = 0; i < units.size(); ++i)
      addDefinitions(i);
    for (const auto &[id, definers] : definitions)
      addRivals(definers, [](const Definition &a, const Definition &b) { return a.where != b.where; });
    addRivals(mains, [](const Definition &, const Definition &) { return true; });
    for (UnitIndex i = 0; i < units.size(); ++i)
      addNeeds(i);
  }

  bool hasMain(UnitIndex unit) const { return isMain[unit]; }

  /// The units that define what `unit` uses.
  const Group &needs(UnitIndex unit) const { return neighbours[unit].needs; }
  /// The units that use what `unit` defines.
  const Group &users(UnitIndex unit) const { return neighbours[unit].users; }

  bool anyRivals() const {
    return std::any_of(rivals.begin(), rivals.end(), [](const auto &each) { return !each.empty(); });
  }

  /// Can the unit be linked with all of `group`?
  bool fits(UnitIndex unit, const Group &group) const {
    return std::none_of(group.begin(), group.end(),
                        [&](UnitIndex each) { return rivals[unit].count(each) != 0; });
  }

private:
  struct Definition {
    UnitIndex unit;
    Location where; ///< a function in a header has one place, whoever includes it
  };
  struct Neighbours {
    Group needs, users;
  };

  void addDefinitions(UnitIndex index) {
    const Unit &unit = units[index];
    for (const auto &[id, function] : unit.functions) {
      if (!function.hasBody)
        continue;
      if (function.isMain) {
        mains.push_back({index, function.where});
        isMain[index] = true;
      } else if (id != unit.globalInit) {
        definitions[id].push_back({index, function.where});
      }
    }
    for (const auto &[id, type] : unit.types)
      if (type.isProject && !type.isLambda && type.where.valid() && !isLocalToUnit(id))
        definitions["type " + id.str()].push_back({index, type.where});
    if (const auto init = unit.functions.find(unit.globalInit); init != unit.functions.end())
      forEachFact(init->second, [&](const Fact &fact) {
        if (fact.kind == FactKind::Global)
          definitions["global " + fact.name.str()].push_back({index, {}});
      });
  }

  /// Units that define one name in different places, or two mains, are no parts of one program.
  template <typename Excludes> void addRivals(const std::vector<Definition> &definers, Excludes excludes) {
    const auto likeFirst = [&](const Definition &each) { return !excludes(definers.front(), each); };
    if (std::all_of(definers.begin(), definers.end(), likeFirst))
      return; // nearly always: a header that many units include
    for (const Definition &a : definers)
      for (const Definition &b : definers)
        if (a.unit != b.unit && excludes(a, b))
          rivals[a.unit].insert(b.unit);
  }

  void addNeeds(UnitIndex index) {
    std::unordered_set<Name> used;
    for (const auto &[id, function] : units[index].functions)
      forEachFact(function, [&](const Fact &fact) {
        if (fact.kind == FactKind::Global)
          used.insert("global " + fact.name.str());
        else if (fact.target)
          used.insert(fact.target);
      });
    for (Name name : used)
      if (const auto found = definitions.find(name); found != definitions.end())
        connect(index, found->second);
  }

  /// `index` uses what `definers` define. Of several definitions it means the one that lies nearest.
  void connect(UnitIndex index, const std::vector<Definition> &definers) {
    const std::string &file = units[index].mainFile.str();
    const Definition *nearest = nullptr;
    std::ptrdiff_t best = -1;
    for (const Definition &each : definers) {
      if (each.unit == index)
        return;
      const std::ptrdiff_t shared = sharedPrefix(file, units[each.unit].mainFile.str());
      if (shared > best) {
        best = shared;
        nearest = &each;
      }
    }
    neighbours[index].needs.insert(nearest->unit);
    neighbours[nearest->unit].users.insert(index);
  }

  template <typename Visitor> static void forEachFact(const Function &function, Visitor visit) {
    for (const Block &block : function.blocks)
      for (const Fact &fact : block.facts)
        visit(fact);
  }

  const std::vector<Unit> &units;
  std::unordered_map<Name, std::vector<Definition>> definitions;
  std::vector<Definition> mains;
  std::vector<Neighbours> neighbours;
  std::vector<std::unordered_set<UnitIndex>> rivals;
  std::vector<bool> isMain;
};

/// Everything that `start` leads to, as far as it can be one program.
template <typename Next> Group reach(const LinkGraph &graph, UnitIndex start, Next next) {
  Group group{start};
  std::vector<UnitIndex> open{start};
  while (!open.empty()) {
    const UnitIndex unit = open.back();
    open.pop_back();
    for (UnitIndex other : next(unit))
      if (!group.count(other) && !graph.hasMain(other) && graph.fits(other, group)) {
        group.insert(other);
        open.push_back(other);
      }
  }
  return group;
}

} // namespace

std::vector<std::vector<std::size_t>> groupPrograms(const std::vector<Unit> &units) {
  const LinkGraph graph(units);
  std::vector<Group> groups;
  Group covered;
  const auto add = [&](Group group) {
    covered.insert(group.begin(), group.end());
    groups.push_back(std::move(group));
  };
  if (!graph.anyRivals()) {
    for (UnitIndex i = 0; i < units.size(); ++i)
      covered.insert(i);
    groups.push_back(covered);
  }
  for (UnitIndex i = 0; i < units.size(); ++i)
    if (graph.hasMain(i) && !covered.count(i))
      add(reach(graph, i, [&](UnitIndex unit) { return graph.needs(unit); }));
  // Libraries, tests without a main, and what registers itself: along calls in both directions, but into what
  // a program holds already only along calls from here.
  for (UnitIndex i = 0; i < units.size(); ++i) {
    if (covered.count(i))
      continue;
    add(reach(graph, i, [&](UnitIndex unit) {
      Group next = graph.needs(unit);
      for (UnitIndex user : graph.users(unit))
        if (!covered.count(user) && !covered.count(unit))
          next.insert(user);
      return next;
    }));
  }
  std::vector<std::vector<std::size_t>> result;
  for (const Group &group : groups)
    result.emplace_back(group.begin(), group.end());
  return result;
}

} // namespace devicetidy::driver
