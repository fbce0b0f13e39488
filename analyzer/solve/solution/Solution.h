//===- Solution.h - what the solver knows about a program -------*- C++ -*-===//
//
// The answers that checks ask for. Everything is plain data with source locations: no text for the user is
// made here and no check decides anything about devices itself.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"
#include "analyzer/solve/solution/Step.h"

#include <map>
#include <string>
#include <vector>

namespace devicetidy {

struct PlacedOperand {
  std::string text; ///< as written in the source, or a description ("parameters of fc1")
  Location where;
  std::string device;        ///< "cpu", "cuda:0", "cuda" (current), "device", "devices.back()" ...
  std::vector<Step> history; ///< oldest first
  bool isCode = false;       ///< `text` is an expression of the source
  std::string module{};      ///< whose parameter it is, as written; empty: it is none
};

/// The step of the history of `operand` that decided its device; null for one without a history.
inline const Step *decidingStep(const PlacedOperand &operand) {
  for (auto step = operand.history.rbegin(); step != operand.history.rend(); ++step)
    if (decidesDevice(step->kind))
      return &*step;
  return operand.history.empty() ? nullptr : &operand.history.back();
}

/// Where `operand` was registered with a module, which moves it; null when it was not, or was moved since.
inline const Step *registeringStep(const PlacedOperand &operand) {
  for (auto step = operand.history.rbegin(); step != operand.history.rend(); ++step)
    if (step->kind == StepKind::Registered)
      return &*step;
    else if (decidesDevice(step->kind))
      break;
  return nullptr;
}

struct CallSite {
  Location where;
  std::string function; ///< the function that is called there
  std::string module{}; ///< the module, as written, whose method that is; empty: it is none, or of this one
  bool isOfModule = false;
};

enum class ConflictKind : std::uint8_t {
  Operation,
  Loss,
  HostAccess, ///< memory, and who works on it: host code, or a blob
  Launch,     ///< memory of the host, and a kernel that gets a pointer into it
  Load,       ///< the second operand was loaded without a device
};

/// Is one of the two memory and the other who works on it, instead of two operands?
constexpr bool isAboutMemory(ConflictKind kind) {
  return kind == ConflictKind::HostAccess || kind == ConflictKind::Launch;
}

/// An operation whose tensors must be on one device and are not.
struct Conflict {
  Level level = Level::Definite;
  Location where;        ///< the operation
  std::string operation; ///< as users know it: "add", "matmul", "nll_loss", "Linear::forward"
  ConflictKind kind = ConflictKind::Operation;
  PlacedOperand first;           ///< the operand that fixes the device, or the memory
  PlacedOperand second;          ///< the operand that should be moved, or who works on the memory
  std::string functionId;        ///< function that holds the operation
  std::string entryId;           ///< function the analysis had started from
  std::vector<CallSite> callers; ///< innermost first; how the operation was reached with these devices
  /// Where the device of what was left behind was decided, if that is in another function: the mistake is
  /// there.
  Location cause;
};

/// Work on a GPU that runs on the current one, while its memory is on another, or on one that a caller
/// decides and nothing makes current.
struct MissingGuard {
  Level level = Level::Likely;
  Location
      where; ///< in the function that should make the GPU current: the work, or the call that leads to it
  std::string functionId;
  std::string work;              ///< the kernel or library function
  Location worksAt;              ///< the launch or call
  std::vector<Location> through; ///< the calls between, outermost first
  PlacedOperand memory;
  std::string current;   ///< the device that is current there; empty: whichever the caller made current
  std::string parameter; ///< a tensor that the function can ask for its device; may be empty
  std::vector<CallSite> callers; ///< how the function was reached, innermost first
};

enum class IndexFault : std::uint8_t {
  Early, ///< made before the GPU that works on it was current
  CountOfGpus,
  GlobalRank, ///< of all machines: a machine has fewer GPUs than there are ranks
};

/// Work on one GPU gets what is on another, because an index was lost on the way; or the index of a GPU is
/// none.
struct LostIndex {
  Level level = Level::Likely;
  Location where;
  std::string operation;
  PlacedOperand first; ///< made before the GPU that `operation` works on was current
  IndexFault fault = IndexFault::Early;
  std::vector<CallSite> callers;
  Location decided{}; ///< where the rank is asked for
};

enum class RankFault : std::uint8_t {
  Placed, ///< put on a fixed GPU
  Early,  ///< made before the GPU of the rank is current
  Unset,  ///< the ranks are joined, and no GPU is made current for each
  Loaded, ///< put where it was saved
};

/// What each rank of a program makes on the same GPU.
struct RankCollision {
  Level level = Level::Likely;
  Location where;
  std::string operation; ///< what makes it
  std::string device;    ///< the GPU it is put on; empty: whichever is current at first
  Location decided; ///< where the GPU of the rank is made current, the rank is read, the ranks are joined
  RankFault fault = RankFault::Placed;
  std::vector<CallSite> callers;
};

/// A load that names no device, though the program has one for it.
struct UnmappedLoad {
  Level level = Level::Likely;
  Location where;
  std::string operation;
  std::string parameter; ///< for the device, which is not passed on; empty: what was loaded is moved
  Location declared;     ///< the parameter, or the move
  std::vector<CallSite> callers;
};

/// A call of Tensor::to/cpu/cuda/type_as/... whose result is thrown away.
struct DiscardedMove {
  Location where;
  std::string tensor;   ///< the receiver as written
  std::string method;   ///< "to", "cpu" ...
  std::string callText; ///< the whole call as written
  bool changesDtypeOnly = false;
  bool isOfCopy = false; ///< it is assigned to a loop variable that is a copy of an element of `tensor`
  std::string functionId;
};

/// A pointer into the memory of a temporary tensor that is kept beyond the statement.
struct DanglingData {
  Level level = Level::Likely; ///< likely: the temporary may be a tensor that lives on, on another device
  Location where;              ///< the call that gives the pointer
  std::string tensor;          ///< the temporary as written
  std::string pointer;         ///< what the pointer is kept in
  std::string functionId;
};

/// A tensor or submodule member that Module::to does not move, used together with what it does move.
struct UnregisteredMember {
  Conflict conflict; ///< the first operation that fails for it
  std::string className;
  std::string member;
  bool isModule = false;
  Location declared;
  Location created; ///< where the constructor makes it; invalid when only the declaration is known
  Location moved;   ///< where a module of this class is moved
};

/// A spread placement map that reaches a model loader in a program that initialises distributed training.
struct MapUnderDistributed {
  Level level = Level::Definite;
  Location where;           ///< where the map reaches the loader, or the layers are spread
  std::string map;          ///< "auto", "balanced", "{3 entries}", "i % device_count()"
  std::string loader;       ///< callee or option that takes the map
  std::vector<Step> origin; ///< where the map's value comes from
  Location initialised;     ///< where distributed training is initialised
  std::string initialiser;  ///< "c10d::ProcessGroupGloo", "torchrun" ...
};

/// Options: of tensors to be made. Other: nothing that lives on a device; it has none.
enum class PlacedKind : std::uint8_t { Tensor, Tensors, Module, Device, Options, Other };

/// A variable or an expression, and one of the devices it is on when control is there.
struct PlacedExpression {
  Location where;
  std::string text; ///< as written in the source
  PlacedKind kind = PlacedKind::Tensor;
  std::string device;         ///< as in Step; a Device: the one it names
  bool isOpen = false;        ///< decided outside: `device` names who decides
  bool isDeclaration = false; ///< `where` is the name in a declaration
  std::vector<Step> history;  ///< oldest first
};

struct SolveStats {
  std::size_t functions = 0, facts = 0, contexts = 0, rowsLeftOut = 0;
  std::size_t factsRun = 0; ///< how often a fact was run
  std::map<std::string, std::size_t>
      unknownCalls;                            ///< callee -> how often it was met without a model or a body
  std::map<std::string, std::size_t> capsHit;  ///< which bound -> how often
  std::vector<std::string> unreachedFunctions; ///< project functions that no analysis entered
};

struct Solution {
  std::vector<Conflict> conflicts;
  std::vector<MissingGuard> missingGuards; ///< one for a function
  std::vector<LostIndex> lostIndices;
  std::vector<RankCollision> rankCollisions;
  std::vector<UnmappedLoad> unmappedLoads;
  std::vector<DiscardedMove> discardedMoves;
  std::vector<DanglingData> danglingData;
  std::vector<UnregisteredMember> unregisteredMembers;
  std::vector<MapUnderDistributed> mapsUnderDistributed;
  std::vector<PlacedExpression> placed; ///< by place; only what SolveOptions::placedIn asks for
  SolveStats stats;
};

} // namespace devicetidy
