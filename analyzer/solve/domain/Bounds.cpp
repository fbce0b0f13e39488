#include "analyzer/solve/domain/Bounds.h"

#include <array>

namespace devicetidy {
namespace {

constexpr auto boundCount = static_cast<std::size_t>(Bound::Count_);

// Values and terms know no solver they belong to; a program is solved by one thread.
thread_local std::array<std::size_t, boundCount> hits{};

} // namespace

const char *nameOf(Bound bound) {
  switch (bound) {
  case Bound::CallDepth:
    return "call depth";
  case Bound::RecursionDepth:
    return "recursion depth";
  case Bound::RecursionWithoutDevices:
    return "recursion without devices";
  case Bound::Contexts:
    return "contexts of one function";
  case Bound::ContextsWithoutDevices:
    return "contexts of one function without devices";
  case Bound::ContextsWithNumbers:
    return "contexts of one function that differ in numbers";
  case Bound::Overriders:
    return "overriders of one call";
  case Bound::VisitsOfBlock:
    return "visits of one block";
  case Bound::FactsOfEntry:
    return "facts run from one entry";
  case Bound::ImportedEntries:
    return "entries of files that are only imported";
  case Bound::FactsOfTests:
    return "facts run from tests";
  case Bound::RowsOfAlgorithm:
    return "rows of one algorithm";
  case Bound::RowsOfElements:
    return "ways through the constructors of an array's elements";
  case Bound::RowsOfSequential:
    return "rows of one Sequential";
  case Bound::AlternativesOfElement:
    return "alternatives of one element";
  case Bound::ElementsOfList:
    return "elements of one list";
  case Bound::AlternativesOfList:
    return "alternatives of one list";
  case Bound::CopiesOfSite:
    return "objects made at one place";
  case Bound::Conditions:
    return "conditions of one path";
  case Bound::ExcludedPairs:
    return "excluded conditions of one path";
  case Bound::ParametersOfModule:
    return "parameters of one module";
  case Bound::ModulesOfModule:
    return "submodules of one module";
  case Bound::ObjectsOfClass:
    return "objects of one class";
  case Bound::LivesOfObject:
    return "ways to set up one object";
  case Bound::ChangesOfObject:
    return "changes of one object";
  case Bound::FactsOfLives:
    return "facts run on one object";
  case Bound::MapNesting:
    return "nesting of one device_map";
  case Bound::StacksOfMap:
    return "call stacks of one device_map";
  case Bound::TextNesting:
    return "nesting of one command";
  case Bound::Count_:
    break;
  }
  return "";
}

void countHit(Bound bound) { ++hits[static_cast<std::size_t>(bound)]; }

std::map<std::string, std::size_t> takeHits() {
  std::map<std::string, std::size_t> taken;
  for (std::size_t i = 0; i < boundCount; ++i)
    if (hits[i] > 0)
      taken[nameOf(static_cast<Bound>(i))] = hits[i];
  hits.fill(0);
  return taken;
}

} // namespace devicetidy
