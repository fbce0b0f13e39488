//===- CallStates.cpp - what a call is given, and what it brings back ---===//
//
// The less of a row a callee is given, the more calls have the same summary.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/domain/Answers.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/Options.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/domain/Widening.h"
#include "analyzer/solve/engine/Machine.h"

#include <algorithm>

namespace devicetidy {
namespace {

/// Which conditions a callee can come upon: not those on what only its caller can name, loop variables,
/// joined values, answers and options that it is not given, and objects that it cannot reach.
class Relevance {
public:
  Relevance(const Store &reached, const std::vector<Value> &inputs) : reached(reached), inputs(inputs) {}

  bool of(Term term) const {
    if (isOption(term))
      return isGiven(term) || isGiven(optionTerm(anyOption));
    if (term->kind != TermKind::Apply)
      return true;
    if (term->name == op::loop || term->name == op::phi || isAnswerOfOneCall(term))
      return isGiven(term);
    if (term->name == op::call && isGiven(term)) // the callee has the answer
      return true;
    if (const auto number = constantOf(term->args.empty() ? term : term->args[0]);
        number && (term->name == op::size || term->name == op::address)) {
      const auto root = static_cast<RootId>(*number);
      const bool isOfCaller = kindOf(root) == RootKind::Local || kindOf(root) == RootKind::Heap;
      return !isOfCaller || reached.get(root);
    }
    return std::all_of(term->args.begin(), term->args.end(), [&](Term arg) { return of(arg); });
  }

private:
  bool isGiven(Term term) const {
    const auto isIn = [&](const Value &value) { return mentions(value, term); };
    bool isFound = std::any_of(inputs.begin(), inputs.end(), isIn);
    reached.forEach([&](RootId, const Value &value) { isFound = isFound || isIn(value); }, term->marks);
    return isFound;
  }

  const Store &reached;
  const std::vector<Value> &inputs;
};

bool holds(const std::vector<Condition> &conditions, const Condition &wanted) {
  return std::find(conditions.begin(), conditions.end(), wanted) != conditions.end();
}

// What the caller knew and the callee was not told holds as before; what it was told is as the callee leaves
// it.
void bringConditions(const Row &caller, const Row &entry, const Row &callee, Row &result) {
  const bool isWhole = entry.known == caller.known && entry.excluded.size() == caller.excluded.size();
  if (isWhole) {
    result.known = callee.known;
    result.guessed = callee.guessed;
    result.bounded = callee.bounded;
    result.excluded = callee.excluded;
    return;
  }
  result.known.clear();
  for (const Condition &condition : caller.known)
    if (!holds(entry.known, condition))
      result.known.push_back(condition);
  for (const Condition &condition : callee.known)
    result.learn(condition);
  // A guess among what it was not told made all of it a guess.
  result.guessed = caller.guessed || (callee.guessed && !entry.guessed);
  result.bounded = caller.bounded || (callee.bounded && !entry.bounded);
  result.excluded.clear();
  for (const auto &pair : caller.excluded)
    if (std::find(entry.excluded.begin(), entry.excluded.end(), pair) == entry.excluded.end())
      result.excluded.push_back(pair);
  result.excluded.insert(result.excluded.end(), callee.excluded.begin(), callee.excluded.end());
}

// Has a loop of the callee forgotten what it was told of an answer that the caller had, or has the callee
// another answer of a call that it was not told of?
bool hasOtherAnswers(const Row &caller, const Row &entry, const Row &callee) {
  return std::any_of(caller.known.begin(), caller.known.end(), [&](const Condition &had) {
    if (!restsOnAnswer(had.first))
      return false;
    const bool isAsked = std::any_of(callee.known.begin(), callee.known.end(),
                                     [&](const Condition &asked) { return asked.first == had.first; });
    return holds(entry.known, had) ? !holds(callee.known, had) : isAsked;
  });
}

Row conditionsFor(const Row &row, Row entry, const std::vector<Value> &inputs) {
  const Relevance relevance(entry.store, inputs);
  entry.guessed = row.guessed;
  entry.bounded = row.bounded;
  entry.isOtherWay = row.isOtherWay;
  for (const Condition &condition : row.known)
    if (relevance.of(condition.first) ||
        condition.first == availableTerm()) // whether there is a GPU holds everywhere
      entry.known.push_back(condition);
    else {
      entry.guessed |= isGuess(condition.first);
      entry.bounded |= restsOnBound(condition.first);
    }
  for (const auto &pair : row.excluded)
    if (relevance.of(pair.first.first) && relevance.of(pair.second.first))
      entry.excluded.push_back(pair);
  entry.aliases = row.aliases;
  entry.moves = row.moves;
  entry.currentDevice = row.currentDevice;
  return entry;
}

// Adds to `outer` what `reached` leads to.
Store addReached(const Store &all, Store outer, std::vector<Value> reached) {
  while (!reached.empty()) {
    const Value next = std::move(reached.back());
    reached.pop_back();
    forEachAddress(next, [&](const Address &address) {
      if (kindOf(address.root) == RootKind::Outside || outer.get(address.root))
        return;
      if (Value value = all.get(address.root)) {
        outer.set(address.root, value);
        reached.push_back(std::move(value));
      }
    });
  }
  return outer;
}

// `outer`, and what it and the inputs lead to.
Store reachable(const Store &all, Store outer, const std::vector<Value> &inputs) {
  std::vector<Value> reached = inputs;
  outer.forEach([&](RootId, const Value &value) { reached.push_back(value); }, marks::address);
  return addReached(all, std::move(outer), std::move(reached));
}

bool holdsCallable(const Store &store, const std::vector<Value> &inputs) {
  return marks::include(store.marks(), marks::callable) ||
         std::any_of(inputs.begin(), inputs.end(),
                     [](const Value &input) { return marks::include(input->marks, marks::callable); });
}

} // namespace

// Most functions are run in some hundred facts. Those that take as many as they may, such as functions that
// each make a large model, would take minutes in a package that has thousands.
void Machine::beginEntry(const Store &start, bool isStart) {
  solution.stats.factsRun += factsRun + factsOfPhases;
  const std::size_t spentBefore = std::max(factsBefore + solution.stats.factsRun, bounds::factsOfEntries);
  const std::size_t most = isStart ? bounds::factsPerEntry : bounds::factsPerOpenEntry;
  mostFacts = std::max(most / bounds::latestEntry, most * bounds::factsOfEntries / spentBefore);
  factsRun = factsOfPhases = 0;
  spent.clear();
  failed.clear();
  summaries.age(bounds::summariesKept);
  Store all = start.outer().with(RootKind::Heap, start);
  if (all.digest() == beganOf.digest()) // methods are run one by one on one object
    return;
  beganOf = std::move(all);
  began = reachable(beganOf, beganOf.outer(), {});
  beganWithoutNumbers.reset();
}

Store Machine::forgetNumbers(const Store &entry) {
  if (!beganWithoutNumbers)
    beganWithoutNumbers = withoutNumbers(began, {}, {});
  return withoutNumbers(entry, began, *beganWithoutNumbers);
}

// What all globals and the inputs lead to. Most of it is as it was when the entry began.
Store Machine::reachableFromGlobals(const Store &all, const std::vector<Value> &inputs) const {
  Store outer = all.outer().with(RootKind::Heap, began);
  std::vector<Value> reached = inputs;
  for (const RootKind kind : {RootKind::Heap, RootKind::Global, RootKind::Outside})
    Store::forEachDifference(kind, began, all, [&](RootId root, const Value &before, const Value &now) {
      if (kind == RootKind::Heap && !before)
        return;
      outer.set(root, now);
      if (now)
        reached.push_back(now);
    });
  return addReached(all, std::move(outer), std::move(reached));
}

// `outer` without the globals that no function below `callee` names. Most callees name few of them.
Store Machine::namedBelow(const Function &callee, const Store &outer) const {
  Store named = outer.outside();
  outer.forEach(RootKind::Global, [&](RootId root, const Value &value) {
    const Name id = memory.info(root).origin->args[0]->name;
    if (footprints.mayMeet(callee, id) || footprints.isOurs(id))
      named.set(root, value);
  });
  return named;
}

// What a callee can come upon: globals, what it is given, and what these lead to. Whoever is given a callable
// may come upon any global.
Row Machine::restrict(const Row &row, const Function &callee, const std::vector<Value> &inputs) const {
  bool mayMeetAll = footprints.mayMeetAll(callee);
  Row entry;
  if (!mayMeetAll) {
    entry.store = reachable(row.store, namedBelow(callee, row.store.outer()), inputs);
    mayMeetAll = holdsCallable(entry.store, inputs);
  }
  if (mayMeetAll)
    entry.store = reachableFromGlobals(row.store, inputs);
  return conditionsFor(row, std::move(entry), inputs);
}

// What a call was given may have become anything.
void Machine::forgetGiven(Row &row) const {
  std::vector<RootId> given;
  row.store.forEach([&](RootId root, const Value &) {
    const bool isGlobal = kindOf(root) == RootKind::Global;
    if (!isGlobal || !footprints.isOurs(memory.info(root).origin->args[0]->name))
      given.push_back(root);
  });
  for (RootId root : given)
    row.store.set(root, unknownValue());
  row.guessed = true;
}

// What could not be parsed may do anything with what it names, and with what that leads to.
void Machine::forgetNamed(Row &row, const Fact &unparsed) const {
  std::vector<Value> named;
  std::vector<const Function *> functions;
  for (const Operand &operand : unparsed.operands) {
    const Value value = registerOf(row, operand.reg);
    if (is(value, ValueKind::Function))
      if (const Function *function = program.function(value->function))
        functions.push_back(function);
    if (!is(value, ValueKind::Address))
      named.push_back(value);
    else if (operand.isWritable || !operand.isAddress)
      named.push_back(memory.read(row, value->address));
  }
  std::vector<RootId> reached;
  reachable(row.store, Store(), named).forEach([&](RootId root, const Value &) { reached.push_back(root); });
  row.store.forEach(RootKind::Global, [&](RootId root, const Value &) {
    const Name id = memory.info(root).origin->args[0]->name;
    if (!footprints.isOurs(id) &&
        std::any_of(functions.begin(), functions.end(),
                    [&](const Function *function) { return footprints.mayMeet(*function, id); }))
      reached.push_back(root);
  });
  for (RootId root : reached)
    row.store.set(root, unknownValue());
  for (const Operand &operand : unparsed.operands)
    if (const Value value = registerOf(row, operand.reg); is(value, ValueKind::Address))
      if (operand.isWritable || !operand.isAddress)
        memory.write(row, value->address, unknownValue());
}

Outcomes Machine::runWithin(Frame &frame, Row start) {
  const bool isPhase = frame.caller && frame.caller->depth == 0 && frame.caller->function.isMain &&
                       factsOfPhases < bounds::phasesOfEntry * mostFacts;
  const std::size_t before = isPhase ? std::exchange(factsRun, 0) : factsRun;
  Outcomes outcomes = run(frame, start);
  if (outcomes.empty() && factsRun > mostFacts) { // it was cut short, and may return all the same
    forgetGiven(start);
    outcomes.push_back({std::move(start), unknownValue()});
  }
  const std::size_t facts = factsRun - (isPhase ? 0 : before);
  for (Spent *cost : {&spent[&frame.function], &spentByAll[&frame.function]}) {
    ++cost->contexts;
    cost->facts += facts;
  }
  if (isPhase) {
    factsRun = before;
    factsOfPhases += facts;
  }
  return outcomes;
}

// To run one costs less than to look for what it has answered before.
static bool isGetter(const Function &function) {
  return function.blocks.size() == 1 &&
         std::none_of(function.blocks[0].facts.begin(), function.blocks[0].facts.end(), [](const Fact &fact) {
           return fact.kind == FactKind::Call || fact.kind == FactKind::Construct;
         });
}

// Most entries need what many have run in one state of their own.
bool Machine::hasCostTooMuch(const Function &callee, bool matters) const {
  const auto cost = spent.find(&callee);
  if (cost == spent.end() || isGetter(callee))
    return false;
  const Spent &all = spentByAll.at(&callee);
  const bool isOften = all.contexts >= bounds::contextsPerFunction && all.facts >= bounds::factsPerFunction;
  const bool isCostly =
      cost->second.contexts >= bounds::contextsPerEntry && cost->second.facts >= bounds::factsOfContexts;
  return isOften || (isCostly && !matters);
}

bool Machine::tellsNumbersApart(const Function &callee) {
  const auto cost = spent.find(&callee);
  return cost == spent.end() || cost->second.facts < bounds::factsOfContexts ||
         isWithin(cost->second.contexts, bounds::contextsPerEntry, Bound::ContextsWithNumbers);
}

// Brings what a call did into the caller's row. Heap objects the callee made get names of their own there;
// made in a loop that is run once for any iteration, they are elements of an array over the iteration.
void Machine::overlay(const Frame &frame, const Row &row, const Row &entry, Outcome &outcome) {
  if (hasOtherAnswers(row, entry, outcome.row)) { // what the caller holds of them is what it was
    Row kept = row;
    keepAnswers(kept);
    if (kept.known != row.known)
      return overlay(frame, kept, entry, outcome);
  }
  std::vector<std::pair<RootId, Value>> written;
  Store::forEachDifference(entry.store, outcome.row.store,
                           [&](RootId root, const Value &, const Value &after) {
                             if (after || kindOf(root) != RootKind::Local)
                               written.emplace_back(root, after);
                           });
  const Term iteration = iterationOf(frame, row);
  std::map<RootId, Address> renamed;
  std::set<RootId> taken;
  for (auto &[root, value] : written) {
    if (kindOf(root) != RootKind::Heap || !value || entry.store.get(root))
      continue;
    const Term site = applyTerm(op::copy, {intTerm(root)});
    if (iteration) {
      renamed[root] = Address{arrayOver(frame, site, memory.info(root).type), nullptr}.element(iteration);
      continue;
    }
    unsigned copy = 0;
    RootId fresh = root;
    while (copy < 64 && (row.store.get(fresh) || taken.count(fresh)))
      fresh = memory.heap(site, copy++, memory.info(root).type);
    taken.insert(fresh);
    if (fresh != root)
      renamed[root] = {fresh, nullptr};
  }
  auto rename = [&](const Address &address) -> Address {
    auto found = renamed.find(address.root);
    return found == renamed.end() ? address
                                  : Address{found->second.root, appendPath(found->second.path, address.path)};
  };
  Row result = row;
  for (auto &[root, value] : written) {
    Value next = value ? endIterations(value) : value; // the loops of the callee are over
    if (!renamed.empty() && next)
      next = rewriteAddresses(next, rename);
    auto moved = renamed.find(root);
    if (moved != renamed.end() && moved->second.path)
      next = summaryList({}, {substitute(next, iteration, elementIndex())});
    result.store.set(moved == renamed.end() ? root : moved->second.root, next);
  }
  if (!renamed.empty())
    outcome.result = rewriteAddresses(outcome.result, rename);
  bringConditions(row, entry, outcome.row, result);
  result.aliases = outcome.row.aliases;
  result.moves = outcome.row.moves;
  result.currentDevice = outcome.row.currentDevice;
  outcome.row = std::move(result);
}

} // namespace devicetidy
