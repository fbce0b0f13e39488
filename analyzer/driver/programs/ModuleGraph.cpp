#include "analyzer/driver/programs/ModuleGraph.h"

#include <algorithm>

namespace devicetidy::driver {
namespace {

/// Programs in which others than the main may call what a module has. More of them tell the same again, and a
/// project can have hundreds of scripts.
constexpr unsigned mostOpened = 3;

} // namespace

ModuleGraph::ModuleGraph(const std::vector<Unit> &units)
    : units(units), imports(units.size()), importers(units.size()) {
  std::unordered_map<Name, UnitIndex> byFile;
  for (UnitIndex i = 0; i < units.size(); ++i)
    if (units[i].joining == Joining::Everywhere) {
      everywhere.push_back(i);
    } else if (units[i].joining != Joining::Linked) {
      modules.push_back(i);
      byFile[units[i].mainFile] = i;
      if (std::any_of(units[i].functions.begin(), units[i].functions.end(),
                      [](const auto &each) { return each.second.isMain; }))
        mains.push_back(i);
    }
  for (UnitIndex i : modules)
    for (Name imported : units[i].imports)
      if (const auto found = byFile.find(imported); found != byFile.end()) {
        imports[i].push_back(found->second);
        importers[found->second].push_back(i);
      }
}

UnitGroup ModuleGraph::reach(const std::vector<UnitIndex> &starts,
                             std::initializer_list<const Edges *> edges) const {
  UnitGroup group(starts.begin(), starts.end());
  std::vector<UnitIndex> open = starts;
  while (!open.empty()) {
    const UnitIndex unit = open.back();
    open.pop_back();
    for (const Edges *each : edges)
      for (UnitIndex other : (*each)[unit])
        if (group.insert(other).second)
          open.push_back(other);
  }
  group.insert(everywhere.begin(), everywhere.end());
  return group;
}

std::vector<Group> ModuleGraph::groups() const {
  std::vector<Group> result;
  UnitGroup ofMains, done;
  std::vector<unsigned> opened(units.size());
  const auto isOpen = [&](UnitIndex unit) {
    return units[unit].joining != Joining::Imported || !ofMains.count(unit);
  };
  for (UnitIndex main : mains) {
    const UnitGroup group = reach({main}, {&imports});
    ofMains.insert(group.begin(), group.end());
    Group &made = result.emplace_back(Group{{group.begin(), group.end()}, {}, main});
    for (UnitIndex unit : group)
      if (units[unit].joining == Joining::Packaged ||
          (unit != main && units[unit].joining == Joining::Imported && ++opened[unit] > mostOpened))
        made.others.insert(unit);
  }
  // A script is one caller among others of what it imports, and so is what belongs to it.
  Edges callers = importers;
  for (std::vector<UnitIndex> &each : callers)
    each.erase(std::remove_if(each.begin(), each.end(), [&](UnitIndex unit) { return !isOpen(unit); }),
               each.end());
  for (UnitIndex start : modules) {
    if (!isOpen(start) || done.count(start))
      continue;
    const UnitGroup group = reach({start}, {&imports, &callers});
    done.insert(group.begin(), group.end());
    Group &made = result.emplace_back(Group{{group.begin(), group.end()}});
    for (UnitIndex unit : group)
      if (!isOpen(unit))
        made.others.insert(unit);
  }
  return result;
}

void adapt(Unit &part, std::size_t index, const Group &group) {
  if (part.joining == Joining::Linked)
    return;
  for (auto &[id, function] : part.functions) {
    const bool isStarted = function.isMain && group.main == index;
    function.isEntry = isStarted || (!function.isMain && !group.others.count(index));
    function.isMain = isStarted;
  }
}

} // namespace devicetidy::driver
