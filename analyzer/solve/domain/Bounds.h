//===- Bounds.h - where the analysis stops, and how often -------*- C++ -*-===//
//
// Every number beyond which the solver gives something up, and the count of the times it did. What is given
// up is always a device that could have been known: a bound leads to silence, never to a finding.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace devicetidy {

namespace bounds {
constexpr std::size_t rowsPerBlock = 24; ///< rows kept apart at one point
constexpr std::size_t rowsBeforeScalarsMerge = 4;
constexpr std::size_t rowsPerOutcome = 6; ///< rows a call may return
constexpr unsigned callDepth = 24;
constexpr unsigned recursionDepth = 3; ///< calls under way, of one function or in all, that are recursive
constexpr unsigned countedRecursionDepth = 8; ///< the same for calls that are given a number that is known
/// States that one function is run for, and what they may cost; beyond both each entry runs it for one.
constexpr std::size_t contextsPerFunction = 400, factsPerFunction = 60000;
/// For so many states an entry runs a function that has cost it `factsOfContexts`, where it handles no
/// tensor, module or device; the further states of another one differ by what is not a number only.
constexpr std::size_t contextsPerEntry = 48, factsOfContexts = 60000;
/// So many answers of functions are made before those that nobody asks for are forgotten: some kilobytes
/// each.
constexpr std::size_t summariesKept = 100000;
constexpr std::size_t originsPerSummary =
    8; ///< callers with tensors of one device, but made at different places, that a conflict is told for
constexpr std::size_t overridersPerCall = 4;
constexpr std::int64_t countedIterations =
    8; ///< loops whose bounds the row knows are run one iteration at a time up to this
constexpr std::size_t visitsBeforeWidening = 3;
constexpr std::size_t visitsPerBlock = 400;
/// Facts run from `main`, constructors and initialisers, and from a function that nothing calls, until all
/// entries have cost `factsOfEntries`. From there on both fall as the cost grows, down to one of
/// `latestEntry` parts.
constexpr std::size_t factsPerEntry = 2000000, factsPerOpenEntry = 200000, factsOfEntries = 2000000,
                      latestEntry = 100;
/// Entries of files that nobody has named: of a large package each file imports most others.
constexpr std::size_t importedEntries = 100;
constexpr std::size_t phasesOfEntry = 4;    ///< calls from `main` may cost as much each, so many times
constexpr std::size_t forksPerRead = 4;     ///< alternatives of one element that are followed
constexpr std::size_t unrolledElements = 8; ///< lists up to this are run element by element by range-for
constexpr std::size_t unrolledInComprehension =
    64; ///< the same in a comprehension of Python, whose iterations cost little
constexpr std::size_t knownElements = 16;       ///< elements of a list that are told apart
constexpr std::size_t listAlternatives = 4;     ///< what an element of a list without places can be
constexpr unsigned copiesPerSite = 64;          ///< objects made at one `new` that are told apart
constexpr std::size_t knownConditions = 64;     ///< conditions a row remembers
constexpr std::size_t excludedPairs = 16;       ///< pairs of conditions a row knows not to hold together
constexpr std::size_t parametersOfModule = 128; ///< parameters of one module that are told apart
constexpr std::size_t modulesOfModule = 64;     ///< the same for the modules registered in it
constexpr std::size_t modulesOfContainer = 16;  ///< modules that are added to a container in loops
constexpr std::size_t objectsOfClass = 2; ///< ways in which the constructors of a class leave its objects
constexpr std::size_t livesOfObject = 4;  ///< ways in which an object is set up before its methods are called
constexpr std::size_t changesOfObject =
    16; ///< calls of methods that change an object and are followed by others
constexpr std::size_t entriesOfLives = 2; ///< all calls in the lives of one object cost what so many may
constexpr int mapNesting = 4;             ///< containers and objects around a device_map
constexpr std::size_t stacksOfMap = 16;   ///< call stacks that lead to one device_map
constexpr int textNesting = 3;            ///< containers around the text of a command
} // namespace bounds

enum class Bound : std::uint8_t {
  CallDepth,
  RecursionDepth,
  RecursionWithoutDevices,
  Contexts,
  ContextsWithoutDevices,
  ContextsWithNumbers,
  Overriders,
  VisitsOfBlock,
  FactsOfEntry,
  ImportedEntries,
  FactsOfTests,
  RowsOfAlgorithm,
  RowsOfElements,
  RowsOfSequential,
  AlternativesOfElement,
  ElementsOfList,
  AlternativesOfList,
  CopiesOfSite,
  Conditions,
  ExcludedPairs,
  ParametersOfModule,
  ModulesOfModule,
  ObjectsOfClass,
  LivesOfObject,
  ChangesOfObject,
  FactsOfLives,
  MapNesting,
  StacksOfMap,
  TextNesting,
  Count_, ///< how many there are
};

/// The name under which `--stats` prints it.
const char *nameOf(Bound bound);

/// Counts that `bound` was hit, for the solution this thread is making.
void countHit(Bound bound);

/// May something be followed `depth` levels further down? Counts that `bound` was hit when it may not.
inline bool canDescend(int depth, Bound bound) {
  if (depth > 0)
    return true;
  countHit(bound);
  return false;
}

/// Is `count` within `most`? Counts that `bound` was hit when it is not.
inline bool isWithin(std::size_t count, std::size_t most, Bound bound) {
  if (count <= most)
    return true;
  countHit(bound);
  return false;
}

/// Can a list of `count` elements keep them apart?
inline bool canListElements(std::size_t count) {
  return isWithin(count, bounds::knownElements, Bound::ElementsOfList);
}

/// What was counted on this thread since the last call: name of the bound -> how often.
std::map<std::string, std::size_t> takeHits();

} // namespace devicetidy
