#include "analyzer/driver/programs/Programs.h"

#include "analyzer/driver/programs/ModuleGraph.h"
#include "analyzer/driver/programs/UnitGraph.h"
#include "analyzer/facts/Binary.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace devicetidy::driver {
namespace {

/// Units of one program under construction, and who cannot join them any more.
class Growing {
public:
  Growing(const UnitGraph &graph) : graph(graph) {}

  bool fits(UnitIndex unit) const { return !excluded.count(unit) && !(hasMain && graph.hasMain(unit)); }

  /// True when the unit is new.
  bool add(UnitIndex unit) {
    if (!group.insert(unit).second)
      return false;
    excluded.insert(graph.rivals(unit).begin(), graph.rivals(unit).end());
    hasMain |= graph.hasMain(unit);
    return true;
  }

  /// Adds all that `next` leads to from the units so far, as far as it fits; mains only start programs.
  template <typename Next> void reach(Next next) {
    std::vector<UnitIndex> open(group.begin(), group.end());
    while (!open.empty()) {
      const UnitIndex unit = open.back();
      open.pop_back();
      for (UnitIndex other : next(unit))
        if (!graph.hasMain(other) && fits(other) && add(other))
          open.push_back(other);
    }
  }

  UnitGroup group;

private:
  const UnitGraph &graph;
  std::unordered_set<UnitIndex> excluded;
  bool hasMain = false;
};

class Grouping {
public:
  Grouping(const std::vector<Unit> &units, const LinkMap &links)
      : graph(units), modules(units), imagesOf(units.size()) {
    for (UnitIndex i = 0; i < units.size(); ++i)
      (units[i].joining == Joining::Linked ? linked : covered).insert(i);
    std::unordered_map<std::string, std::vector<UnitIndex>> unitsOf;
    for (UnitIndex i = 0; i < units.size(); ++i)
      for (Name object : units[i].objects)
        unitsOf[object.str()].push_back(i);
    for (const LinkedImage &linked : links.images()) {
      Image image;
      for (const std::string &object : linked.objects)
        for (UnitIndex unit : unitsOf[object])
          image.objects.insert(unit);
      image.all = image.objects;
      for (const std::string &object : linked.libraryObjects)
        for (UnitIndex unit : unitsOf[object])
          image.all.insert(unit);
      for (UnitIndex unit : image.all)
        imagesOf[unit].push_back(images.size());
      if (!image.all.empty())
        images.push_back(std::move(image));
    }
  }

  Programs run() {
    if (graph.isOneProgram()) {
      keep(linked);
    } else {
      for (const Image &image : images)
        keep(programOf(image));
      result.fromLinks = result.groups.size();
      for (UnitIndex i : linked)
        if (graph.hasMain(i) && !covered.count(i))
          keep(programOfMain(i));
      for (UnitIndex i : linked)
        if (!covered.count(i))
          keep(programOfRest(i));
    }
    std::vector<Group> ofModules = modules.groups();
    std::move(ofModules.begin(), ofModules.end(), std::back_inserter(result.groups));
    result.linkedUnits = static_cast<std::size_t>(
        std::count_if(imagesOf.begin(), imagesOf.end(), [](const auto &each) { return !each.empty(); }));
    return std::move(result);
  }

private:
  struct Image {
    UnitGroup objects, all;
  };

  void keep(const UnitGroup &group) {
    covered.insert(group.begin(), group.end());
    std::vector<UnitIndex> list(group.begin(), group.end());
    const bool isKnown = std::any_of(result.groups.begin(), result.groups.end(),
                                     [&](const Group &each) { return each.units == list; });
    if (!isKnown && !list.empty())
      result.groups.push_back({std::move(list)});
  }

  UnitGroup programOf(const Image &image) {
    Growing program(graph);
    for (bool isMain : {true, false})
      for (UnitIndex unit : image.objects)
        if (graph.hasMain(unit) == isMain) {
          if (program.fits(unit))
            program.add(unit);
          else
            ++result.keptApart;
        }
    if (program.group.empty()) // all is in libraries, also the main when there is one
      for (bool isMain : {true, false})
        for (UnitIndex unit : image.all)
          if (graph.hasMain(unit) == isMain && program.fits(unit))
            program.add(unit);
    program.reach([&](UnitIndex unit) {
      return graph.needs(unit, [&](UnitIndex each) { return image.all.count(each) != 0; });
    });
    return program.group;
  }

  /// Can `unit` be linked with `other`, as far as the build says?
  bool isInReach(UnitIndex unit, UnitIndex other) const {
    const std::vector<std::size_t> &candidates = imagesOf[unit];
    return candidates.empty() || std::any_of(candidates.begin(), candidates.end(), [&](std::size_t image) {
             return images[image].all.count(other) != 0;
           });
  }

  UnitGroup programOfMain(UnitIndex main) const {
    Growing program(graph);
    program.add(main);
    if (imagesOf[main].empty())
      for (UnitIndex unit : graph.sameTarget(main))
        if (program.fits(unit))
          program.add(unit);
    program.reach([&](UnitIndex unit) {
      return graph.needs(unit, [&](UnitIndex each) { return isInReach(main, each); });
    });
    return program.group;
  }

  /// Libraries, tests without a main, and what registers itself: along calls in both directions, but into
  /// what a program holds already only along calls from here.
  UnitGroup programOfRest(UnitIndex start) const {
    Growing program(graph);
    program.add(start);
    const auto isCandidate = [&](UnitIndex each) { return isInReach(start, each); };
    program.reach([&](UnitIndex unit) {
      UnitGroup next = graph.needs(unit, isCandidate);
      if (!covered.count(unit))
        for (UnitIndex user : graph.users(unit))
          if (!covered.count(user) && isCandidate(user) && isCandidate(unit))
            next.insert(user);
      return next;
    });
    return program.group;
  }

  const UnitGraph graph;
  const ModuleGraph modules;
  UnitGroup linked; ///< the units that are no modules
  std::vector<Image> images;
  std::vector<std::vector<std::size_t>> imagesOf; ///< of each unit; none when the build does not mention it
  UnitGroup covered;
  Programs result;
};

} // namespace

std::string unitBytes(const Unit &unit) {
  Unit copy = unit;
  copy.files.clear();
  return writeBinary({std::move(copy)});
}

void orderUnits(std::vector<Unit> &units) {
  std::vector<std::size_t> order(units.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto bytes = [&](std::size_t unit) { return unitBytes(units[unit]); }; // for ties, which are rare
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (a == b)
      return false;
    if (units[a].mainFile != units[b].mainFile)
      return units[a].mainFile < units[b].mainFile;
    if (units[a].objects != units[b].objects)
      return units[a].objects < units[b].objects;
    return bytes(a) < bytes(b);
  });
  std::vector<Unit> sorted;
  sorted.reserve(units.size());
  for (std::size_t each : order)
    sorted.push_back(std::move(units[each]));
  units = std::move(sorted);
}

Programs groupPrograms(const std::vector<Unit> &units, const LinkMap &links) {
  return Grouping(units, links).run();
}

} // namespace devicetidy::driver
