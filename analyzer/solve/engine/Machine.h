//===- Machine.h - runs facts over rows -------------------------*- C++ -*-===//
//
// The abstract interpreter. A call is run with the caller's actual objects (so receivers, callbacks and
// aliases are exact), and what it did is kept as the summary of that function for that entry: equal entries
// are answered from it. Everything is bounded; hitting a bound loses findings, is counted, and never adds
// one.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Language.h"
#include "analyzer/models/Models.h"
#include "analyzer/solve/domain/Bounds.h"
#include "analyzer/solve/domain/Memory.h"
#include "analyzer/solve/engine/Aging.h"
#include "analyzer/solve/engine/Footprints.h"
#include "analyzer/solve/engine/Observer.h"
#include "analyzer/solve/engine/Usage.h"
#include "analyzer/solve/solution/Solution.h"
#include "analyzer/solve/solution/SolveOptions.h"

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

namespace devicetidy {

/// Copy number of the heap object that stands for all objects a loop makes at one site.
constexpr unsigned arrayCopy = 1000;

/// Lists and dictionaries up to this are run element by element by the range-for loops of `function`.
inline std::size_t unrolledElements(const Function &function) {
  return isComprehension(function) ? bounds::unrolledInComprehension : bounds::unrolledElements;
}

/// The name of a block in terms: the same for every run of the function.
std::string blockName(const Function &function, BlockId id);

struct Frame {
  const Function &function;
  const Frame *caller = nullptr;
  const Fact *call = nullptr; ///< the caller's fact that runs this function
  unsigned depth = 0;
  Address self{};                ///< `this`
  BlockId block = 0;             ///< block being run
  const Store *entry = nullptr;  ///< what the caller passed in: its objects outlive the call
  const Store *before = nullptr; ///< what there was when it began, in an entry, too
  /// In the frame of a model body: the call that the user wrote, and the frame it stands in.
  const Fact *site = nullptr;
  const Frame *user = nullptr;
  /// The iteration that what is made here belongs to, where it is not that of this frame's own loops.
  Term fixedIteration = nullptr;
  bool hasFixedIteration = false;
};

/// A row after a call, with the value the call returned.
struct Outcome {
  Row row;
  Value result;
};
using Outcomes = std::vector<Outcome>;

class Library;
class Machine;

/// An argument of a constructor that a library function runs: its value, and where it is when it is no
/// temporary.
struct Argument {
  Value value;
  Address address;
  Name text{};                      ///< how the user wrote it
  const Operand *written = nullptr; ///< where; null for what the library makes
};

/// A call being evaluated: what library models look at and change.
struct Call {
  Machine &machine;
  Frame &frame;
  Row &row;
  const Fact &fact;
  std::size_t first = 0; ///< index of the first argument (1 when operand 0 is the object)

  std::size_t argCount() const { return fact.operands.size() - first; }
  /// Value of operand `i` (object included), read through its address.
  Value operand(std::size_t i) const;
  Value arg(std::size_t i) const { return operand(first + i); }
  /// Argument `i` as a forwarding reference would take it.
  Argument forwarded(std::size_t i) const;
  std::vector<Argument> forwardedFrom(std::size_t i) const;
  /// Address operand `i` refers to; invalid when it is a plain value.
  Address addressOf(std::size_t i) const;
  Value object() const { return operand(0); }
  Address objectAddress() const { return addressOf(0); }
  Outcomes done(Value result) const;
  Name resultType() const { return fact.type; }
};

/// A name under which a library function has a model.
struct ModelName {
  Name name;
  std::vector<const Function *> bodies; ///< asked before the rows
  const std::vector<models::Row> *rows = nullptr;
};

/// A tensor taking part in an operation.
struct TensorUse {
  Value tensor;
  const Operand *operand = nullptr;
  std::string text{};       ///< when it is not the operand itself: an element of it, "a parameter"
  History owner{};          ///< history of the module whose parameter it is, when it is one
  bool isOfModule = false;  ///< a parameter of the object of the call, or of a module in it
  bool isDescribed = false; ///< `text` is a description; without an operand it always is
  bool isOfList = false;    ///< the operand is a list of tensors
  bool isWanted = false;    ///< no tensor of the program: where the operation wants the others
};

class Machine {
public:
  Machine(const Program &program, const SolveOptions &options, const Library &library, Solution &solution,
          const Usage &usage);

  /// Runs `function` from `row` with its parameters bound; the rows it returns in.
  Outcomes run(Frame &frame, Row row);
  /// What `callee` can come upon when it is given `inputs`.
  Row restrict(const Row &row, const Function &callee, const std::vector<Value> &inputs) const;
  /// Calls a project function with `args` (addresses for reference parameters, values otherwise).
  Outcomes invoke(const Frame &caller, const Fact &fact, Row row, const Function &callee, Address self,
                  std::vector<Value> args);
  /// Evaluates a call that stands for one of the program: what it asks of a value was decided only now.
  Outcomes callAs(Frame &frame, Row &row, const Fact &fact) { return evaluateCall(frame, row, fact); }
  /// Calls what has no body here: what the models say (Library.h).
  Outcomes callLibrary(Call &call);
  /// Constructs an object of `type` at `where` with `args` as make_shared, emplace or a module holder would.
  std::vector<Row> construct(const Frame &caller, const Fact &fact, Row row, Name type, const Address &where,
                             const std::vector<Argument> &args);
  /// Constructs the elements, of class `inner`, of the list that was made at `where` without saying of what.
  std::vector<Row> constructElements(const Frame &caller, const Fact &fact, Row row, Name inner,
                                     const Address &where);
  /// A default-constructed object of `type`.
  Value defaultObject(Name type) const;
  /// An array of `type` with `count` elements as their default constructor leaves them.
  Value defaultArray(const Row &row, Name type, const Value &count) const;
  /// A value of `type` ends: device guards in it restore the device that was current before them.
  void endGuards(Row &row, const Value &value, Name type) const;
  /// A fresh heap object of `type`.
  Address allocate(Row &row, const Frame &frame, const Fact &fact, Name type);

  /// Tensors of `uses` must share a device; records a Conflict when they need not. Returns their common
  /// placement; a definite conflict marks the row as failed: the operation throws, nothing after it runs.
  struct Requirement {
    std::string operation;
    ConflictKind kind = ConflictKind::Operation;
    bool cpuScalars = false;    ///< 0-dim CPU inputs are accepted
    bool onlyThird = false;     ///< of them, only the third
    bool isSure = true;         ///< the operation fails for certain where the devices differ
    bool isOpen = false;        ///< only a caller can tell where one of them is
    bool firstIsOutput = false; ///< the first tensor is written, so it is never such a scalar
  };
  Placement requireSame(Call &call, const std::vector<TensorUse> &uses, const Requirement &requirement);

  /// Does a function under way belong to the class that an object from outside was taken to be of? Whoever
  /// made the object may have chosen the class for a device.
  bool isChosenByObject(const Frame &frame, const Row &row) const;

  /// A tensor of an operation as findings show it, on `placement`.
  PlacedOperand describe(const Call &call, const TensorUse &use, const Placement &placement) const;

  /// Index of the iteration of the innermost loop around the block being run, null when iterations are run
  /// one by one.
  Term iterationOf(const Frame &frame, const Row &row);
  const std::vector<BlockId> &loopHeads(const Function &function);
  /// What the loop at `id` changes is any value of any iteration from here on.
  void varyLoop(Frame &frame, BlockId id, Row &row);
  /// The loop that the block being run tests for is run element by element in `row`, or not.
  void markOneByOne(const Frame &frame, Row &row, bool isSo);

  /// Tensors inside `value`, lists and optionals included (at most `limit`).
  void collectTensors(const Row &row, const Value &value, std::vector<Value> &out,
                      std::size_t limit = 8) const;

  /// Reads `address`; what comes from a member that Module::to does not move says so in its history.
  Value readMarked(const Row &row, const Address &address) const;

  /// Puts the row's current device in for `kCUDA` without an index.
  Placement concrete(const Row &row, Placement placement) const;
  Term freshScalar(const Call &call) const;
  /// What `call` may write to through the addresses it gets is no longer known.
  void forgetWritten(Call &call);
  Value unknownResult(const Call &call);
  Value unseenModule(const Call &call, Name type);
  /// What code that is not seen gives through operand `i` or, without one, as its result: what somebody
  /// outside keeps behind the other operands.
  Term givenBy(const Call &call, std::optional<std::size_t> i) const;
  /// Does `type` lead to a tensor that somebody may keep elsewhere?
  bool isHandle(Name type) const;
  History note(History before, StepKind kind, Location where, std::string subject, std::string device) const;

  /// The models of the function that `fact` calls, of the constructors of `type`, and of `function` on values
  /// of a kind, by kind, as Library.h orders them.
  const std::vector<ModelName> &modelsOf(const Fact &fact);
  const std::vector<ModelName> &constructorsOf(Name type);
  const std::map<Name, std::vector<ModelName>> &modelsByValue(Name function);

  const Program &program;
  const Library &library;
  const models::TorchVersion version;
  const DistributedNames names;
  Types types;
  Memory memory;
  Solution &solution;
  const Usage &usage;
  const Footprints footprints;
  const std::set<Name> *const imported; ///< files that nobody has named; may be null
  const std::atomic<bool> *const stop;  ///< may be null; true: nothing more is run
  /// The entry being run may be called with any device made current by its caller.
  bool currentDeviceIsOpen = false;
  std::string entryCall; ///< the entry being run, and which call of it; names its parameters in terms
  /// What the entry is given and moves to a GPU, and the conditions under which it does.
  std::map<Term, std::set<Condition>> movedUnder;
  /// Where it brings what that call is given, as groupOf() names it, and the parameters that this is of.
  std::map<Term, std::set<Term>> broughtTo;
  std::set<Term> movedFrom; ///< objects that it was given, of whose private members it moves some
  /// What it was given that holds several things, of which it moves one: the others are tensors, too.
  std::set<Term> unpacked;
  std::set<Term> asked;                  ///< tensors from outside, whose devices the code has asked for
  std::set<std::pair<Term, Term>> moves; ///< from which device to which it moves something
  /// Devices that something outside chose, both, and of which an operation has had operands, and where: it
  /// counts on one.
  std::map<std::pair<Term, Term>, Location> met;
  /// Where an object keeps what methods move to what they are given, and which methods.
  std::map<Term, std::set<Name>> keptAndMoved;
  /// An object of each class as its constructor leaves it, whatever that is given.
  std::map<Name, std::vector<Value>> madeObjects;
  /// What the bodies of classes assign, by class and by what they were run on.
  std::unordered_map<std::uint64_t, std::map<Name, Value>> attributesOf;
  std::set<Name> copiesToHost; ///< functions that have copied a tensor to the host
  /// The entry being run is called by something in the program, though not in a way that was followed.
  bool entryIsCalled = false;
  /// The object of the entry being run is one of which only a part is known; Lives runs it as it may be.
  bool isPartial = false;
  std::set<Name> partialFields;   ///< only of these, where there are any
  std::set<Name> forgottenFields; ///< those that other methods change, which are taken as unknown
  bool isSpread = false;         ///< it is a module whose layers are on several devices (Hooks::spreadModule)
  bool objectMovesGiven = false; ///< its object has moved a tensor that a call was given, to keep it
  const std::set<Term> *devicesLeft = nullptr; ///< devices from which its object went to the CPU, in part
  bool reportLatent = false;
  CallObserver *calls = nullptr;         ///< told of every call when set
  FactObserver *facts = nullptr;         ///< told of every fact when set
  const OwnerObserver *owners = nullptr; ///< asked for modules in conflicts when set
  /// Told of a static local that was initialised in a program that had been running: whose flag the row held.
  std::function<void(Row &, Name)> initialisedStatic;
  std::set<const Function *> entered;
  /// The blocks of each function that something has run.
  std::unordered_map<const Function *, std::vector<bool>> reached;
  /// The entry being run, where callers in the program have run it, too: only the ways are told of on which
  /// none of them has sent it (Row::isOtherWay).
  const Function *otherwise = nullptr;
  /// A closure as it was first made, and where: what it has captured is known, whoever calls it.
  struct Closure {
    Row row;
    Value callable;
  };
  std::unordered_map<const Function *, Closure> closures;
  /// Those among them that were called with all tensors that they take; of the others nothing was seen.
  std::set<const Function *> enteredWhole;
  /// Moves of tensors whose result is thrown away, as far as what is called was decided when it was run.
  std::vector<DiscardedMove> discarded;
  /// Those that were run, by their place: would one have changed where the tensor is?
  std::map<Location, bool> discardedChange;
  /// And those that were also run for an object, which moves itself.
  std::set<Location> movedInPlace;
  /// What more is known of each of the solution's conflicts, in their order.
  struct ConflictContext {
    Placement first, second;
    bool firstMayBeScalar = false, secondMayBeScalar = false; ///< the operation takes such a one from the CPU
    bool firstIsPart = false, secondIsPart = false;           ///< of what a member holds
    bool isMeant = false;     ///< the code is meant for more devices than the CPU
    bool isPartial = false;   ///< of an object of which the entry knows a part only
    bool isCandidate = false; ///< nothing is to be said unless a member turns out to hold one device
    bool wasAsked = false;    ///< its row has asked a tensor from outside whether it is on CUDA
  };
  std::vector<ConflictContext> conflictContexts;
  /// Where rows that have asked so found all operands of an operation together: on the CPU, on CUDA.
  std::map<Location, std::pair<bool, bool>> agreements;
  /// Where other entries of the program, whose call reaches it, found all operands of an operation together
  /// on a device: two of them at most.
  std::map<Location, std::set<Name>> togetherFor;
  std::map<Name, Step>
      movedClasses; ///< project module class -> where and to which device one was moved first
  /// Where the program joins ranks that have no GPU yet, and what it does then.
  struct RanksJoined {
    std::string operation;
    std::vector<CallSite> callers;
    bool usesGpu = false, isSet = false; ///< a GPU is used, the one of the rank is made current
  };
  std::map<Location, RanksJoined> ranksJoined;
  /// What some row puts on the GPU that the rank of its process names.
  std::set<Location> placedByRank;
  std::size_t factsRun = 0;
  std::size_t factsOfPhases = 0; ///< in calls from `main`, which have budgets of their own
  const std::size_t factsBefore; ///< in all programs before this one
  std::size_t mostFacts = bounds::factsPerEntry;
  /// What all entries of this program have cost so far.
  std::size_t factsOfProgram() const { return solution.stats.factsRun + factsRun + factsOfPhases; }
  /// Begins an entry of the analysis; with `isStart` one that begins the program.
  void beginEntry(const Store &start, bool isStart);
  /// Operations of the entry being run that have failed for certain, by where each begins and ends, and how
  /// many tensors it had. No fact has a place of its own for long: the library's are made for a call.
  using Operation = std::tuple<Location, std::uint32_t, std::uint32_t>;
  static Operation operationOf(const Fact &fact) {
    return {fact.where, fact.where.endLine, fact.where.endColumn};
  }
  std::map<Operation, std::size_t> failed;
  std::size_t definiteConflicts = 0; ///< operations that fail for certain, met so far

private:
  friend struct Call;
  struct BlockState;
  void enterBlock(Frame &frame, BlockId id, std::vector<Row> &rows, BlockState &state);
  void runBlock(Frame &frame, BlockId id, std::vector<Row> rows, std::vector<BlockState> &states,
                Outcomes &outcomes);
  void finishBlock(Frame &frame, const Block &block, Row row, std::vector<BlockState> &states,
                   Outcomes &outcomes);
  const std::vector<bool> &testedLocals(const Function &function);
  /// Begins an iteration. Returns after how many visits of the loop head rows that still differ are joined.
  std::size_t enterLoop(Frame &frame, BlockId head, std::vector<Row> &rows);
  RootId countedFlag(const Frame &frame, BlockId head);
  struct KnownIterations {
    std::int64_t count = 0; ///< 0: not known
    std::int64_t end = 0;   ///< one past the last number the loop counts to
  };
  KnownIterations knownIterations(const Block &block, const Row &row) const;
  bool closeLists(const Frame &frame, BlockId head, Row &row, std::int64_t length);
  /// After a loop's test: says in `row` whether its iterations are run one by one. `iterations` as the test
  /// before the loop knows them; `isKnown`: this test is known to be true.
  void countIterations(const Frame &frame, const Terminator &test, Row &row, KnownIterations iterations,
                       bool isKnown);
  std::vector<Row> step(Frame &frame, const Fact &fact, Row row);
  /// The same where one row follows, which is most often so; false, and nothing done, elsewhere.
  bool stepInPlace(Frame &frame, const Fact &fact, Row &row);
  void stepStore(const Fact &fact, Row &row);
  std::vector<Row> stepHostAccess(Frame &frame, const Fact &fact, Row row);
  void stepElement(Frame &frame, const Fact &fact, Row &row);
  std::vector<Row> stepCall(Frame &frame, const Fact &fact, Row row);
  std::vector<Row> stepConstruct(Frame &frame, const Fact &fact, Row row);
  std::optional<std::vector<Row>> constructModelled(Call &call, const Address &where, bool isBase);
  Outcomes evaluateCall(Frame &frame, Row &row, const Fact &fact);
  Outcomes evaluateAtSite(Frame &frame, Row &row, Fact fact);
  std::vector<Row> endScope(Frame &frame, const Fact &fact, Row row);
  std::vector<Row> runDeleter(Frame &frame, const Fact &fact, Row row, Name deleter, const Value &pointer);
  const Function *resolveVirtual(const Row &row, const Fact &fact,
                                 std::vector<const Function *> &candidates) const;
  const Function *overrideOf(Name dynamic, const std::vector<const Function *> &all) const;
  Term implementationOf(const Row &row, const Value &receiver) const;
  std::int64_t numberOfClass(Name type);
  std::vector<Name> classNumbers; ///< classes that objects from outside were taken to be of
  Outcomes callOverriders(Frame &frame, const Fact &fact, const Row &row,
                          const std::vector<const Function *> &candidates, const std::vector<Value> &args);
  /// What the fields of a record hold is no longer known.
  void forgetFields(Row &row, const Address &object) const;
  void havoc(Row &row, const Function &callee, const Address &self, const std::vector<Value> &args);
  const Function *selectConstructor(const Type &type, const std::vector<Argument> &args) const;
  void forgetGiven(Row &row) const;
  /// The array of the objects that `site` makes in a loop run for any iteration. Earlier runs of the loop may
  /// have left theirs.
  RootId arrayOver(const Frame &frame, Term site, Name type);
  void forgetNamed(Row &row, const Fact &unparsed) const;
  Store namedBelow(const Function &callee, const Store &outer) const;
  /// What a call is given with all numbers in it unknown.
  Store forgetNumbers(const Store &entry);
  Store reachableFromGlobals(const Store &all, const std::vector<Value> &inputs) const;
  /// Runs a call and notes what it cost. What `main` calls are phases of the program: one that costs too much
  /// takes nothing from those after it.
  Outcomes runWithin(Frame &frame, Row start);
  /// Has the entry run `callee` for so many states, at such a cost, that it is run for no more?
  bool hasCostTooMuch(const Function &callee, bool matters) const;
  /// Is `callee` run for each set of numbers that it is given? Not when calls that differed have cost too
  /// much.
  bool tellsNumbersApart(const Function &callee);
  void overlay(const Frame &frame, const Row &row, const Row &entry, Outcome &outcome);

  struct PairHash {
    std::size_t operator()(const std::pair<Name, Name> &pair) const {
      return pair.first.hash() * 31 + pair.second.hash();
    }
  };
  /// By function and type of its object.
  std::unordered_map<std::pair<Name, Name>, std::vector<ModelName>, PairHash> modelNamesOf;
  std::unordered_map<Name, std::map<Name, std::vector<ModelName>>> kindModels; ///< by function
  /// What a function did for an entry. When it met a conflict: where what it was given came from, for who
  /// gives it the same from elsewhere makes a mistake of its own.
  struct Summary {
    Outcomes outcomes;
    bool hasConflict = false;
    bool isCut = false; ///< no outcome, for the recursion was cut
    bool hasCuts = false, hasDefiniteConflict = false;
    std::set<std::uint64_t> origins;
  };
  Aging<Summary> summaries;
  /// Does a call of what `summary` is of meet its conflict with tensors from elsewhere?
  static bool isNewMistake(Summary &summary, const Row &entry, const std::vector<Value> &inputs);
  std::set<std::uint64_t> failing; ///< summaries without an outcome because a device conflict ends every way
  std::unordered_map<const Function *, unsigned> active;
  std::uint64_t activeHash = 0; ///< of `active`
  /// What calls of a function with different states have cost the entry at hand.
  struct Spent {
    unsigned contexts = 0;
    std::size_t facts = 0;
    bool mayFail = false; ///< a device conflict was certain in some state
  };
  std::unordered_map<const Function *, Spent> spent, spentByAll; ///< by the entry at hand, by all so far
  /// What the entry at hand began with, and that as far as globals lead to it.
  Store beganOf, began;
  std::optional<Store> beganWithoutNumbers;
  std::size_t recursionsCut = 0;
  unsigned reactivations = 0; ///< calls under way of functions that were under way already
  bool mayThrow(const Fact &fact);
  bool mayThrow(const Function &function);
  std::unordered_map<const Function *, bool> throwing;
  std::unordered_map<const Function *, std::vector<BlockId>> orders, heads;
  std::unordered_map<const Function *, std::vector<bool>> tested;
  const std::vector<BlockId> &order(const Function &function);
};

/// How the function of `frame` was reached, innermost call first.
std::vector<CallSite> callersOf(const Types &types, const Frame &frame);
/// The frame that the analysis had started from.
const Frame &entryOf(const Frame &frame);
const Frame &entryOf(Frame &&) = delete;

/// The next iteration of a loop that is run for any iteration: what is of `current` becomes of the one
/// before.
void startIteration(Row &row, Term current);

/// A method of a project class or its bases by its unqualified name; null when there is none.
const Function *findMethod(const Machine &machine, Name type, std::string_view name);
/// The same, of the class itself.
const Function *ownMethod(const Machine &machine, Name type, std::string_view name);
/// Calls `callee` with arguments as a library function would forward them.
Outcomes invokeForwarded(Call &call, Row row, const Function &callee, const Address &self,
                         const std::vector<Argument> &args);

} // namespace devicetidy
