//===- Machine.cpp - the fixpoint over one function ---------------===//
//
// Blocks are taken in reverse post-order. A block is run once for every row that has not been run through it;
// a loop head renames what the loop varies, so that rows repeat, and joins rows when they still do not.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/engine/Machine.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/Hashing.h"
#include "analyzer/solve/domain/Options.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/engine/Operators.h"

#include <algorithm>
#include <iterator>

namespace devicetidy {

std::string blockName(const Function &function, BlockId id) {
  return function.id.str() + "#" + std::to_string(id);
}

struct Machine::BlockState {
  std::vector<Row> pending;
  std::set<std::uint64_t> seen;
  std::size_t visits = 0;
  std::vector<std::pair<std::uint64_t, Row>> joined; ///< by the digest of their placements
};

Machine::Machine(const Program &program, const SolveOptions &options, const Library &library,
                 Solution &solution, const Usage &usage)
    : program(program), library(library),
      version{options.torchMajor ? options.torchMajor : (program.torchMajor ? program.torchMajor : 2),
              options.torchMajor ? options.torchMinor : (program.torchMajor ? program.torchMinor : 6)},
      names(options.names), types(program), memory(types), solution(solution), usage(usage),
      footprints(program, types), imported(options.imported), stop(options.stop),
      factsBefore(options.factsBefore) {}

Placement Machine::concrete(const Row &row, Placement placement) const {
  placement = row.resolve(placement);
  if (placement.kind == PlacementKind::Cuda && placement.index == currentCudaIndex())
    placement.index = row.currentDevice;
  return placement;
}

const std::vector<BlockId> &Machine::order(const Function &function) {
  std::vector<BlockId> &position = orders[&function];
  if (!position.empty())
    return position;
  // Iterative depth-first search: functions of 10,000 branches are deep graphs.
  const std::size_t count = function.blocks.size();
  position.assign(count, static_cast<BlockId>(count));
  std::vector<BlockId> postOrder;
  std::vector<bool> seen(count, false);
  std::vector<std::pair<BlockId, std::size_t>> stack{{0, 0}};
  seen[0] = true;
  while (!stack.empty()) {
    auto &[id, next] = stack.back();
    const Block &block = function.blocks[static_cast<std::size_t>(id)];
    const std::size_t successors = block.terminator.successors.size() + (block.handler >= 0 ? 1 : 0);
    if (next == successors) {
      postOrder.push_back(id);
      stack.pop_back();
      continue;
    }
    // The last successor first, so that a loop's body comes before its exit in reverse post-order.
    const std::size_t index = successors - 1 - next++;
    const BlockId to =
        index < block.terminator.successors.size() ? block.terminator.successors[index] : block.handler;
    if (to >= 0 && static_cast<std::size_t>(to) < count && !seen[static_cast<std::size_t>(to)]) {
      seen[static_cast<std::size_t>(to)] = true;
      stack.emplace_back(to, 0);
    }
  }
  for (std::size_t i = 0; i < postOrder.size(); ++i)
    position[static_cast<std::size_t>(postOrder[i])] = static_cast<BlockId>(postOrder.size() - 1 - i);
  return position;
}

namespace {

// What the user has chosen, as far as the row knows it: no loop changes that.
std::uint64_t chosenDigest(const Row &row) {
  std::uint64_t all = 0;
  for (const auto &[term, number] : row.known)
    if (mentionsOption(term))
      all += mix(term->hash, static_cast<std::uint64_t>(number));
  return all;
}

} // namespace

void Machine::enterBlock(Frame &frame, BlockId id, std::vector<Row> &rows, BlockState &state) {
  const Block &block = frame.function.blocks[static_cast<std::size_t>(id)];
  auto phi = [&] { return symbolTerm(Name("join " + blockName(frame.function, id))); };
  ++state.visits;
  if (rows.size() > 1 || block.isLoopHead)
    for (Row &row : rows)
      memory.collectGarbage(row, frame.entry);
  const std::size_t patience = block.isLoopHead ? enterLoop(frame, id, rows) : 0;
  if (block.isLoopHead && rows.size() > 1) {
    const bool isInComprehension = isComprehension(frame.function);
    if (isInComprehension)
      for (Row &row : rows)
        row.registers.clear(); // of the condition
    mergeLeftOut(rows, isInComprehension, phi());
  }
  if (rows.size() > 1)
    solution.stats.rowsLeftOut +=
        mergeRows(rows, bounds::rowsBeforeScalarsMerge, bounds::rowsPerBlock, phi());
  // Rows that still differ after some iterations are joined: with a row of the same placements where there is
  // one (what counts iterations becomes unknown), with one of what the user has chosen alike otherwise.
  if ((block.isLoopHead && state.visits > patience) || state.visits > bounds::visitsPerBlock)
    for (Row &row : rows) {
      const std::uint64_t places = row.placeDigest(), chosen = chosenDigest(row);
      const auto of = [&](auto isSuch) {
        return std::find_if(state.joined.begin(), state.joined.end(), isSuch);
      };
      auto like = of([&](const auto &entry) { return entry.first == places; });
      if (like == state.joined.end()) {
        like = of([&](const auto &entry) { return chosenDigest(entry.second) == chosen; });
        const bool isFirst = like == state.joined.end();
        if (state.joined.size() < (isFirst ? bounds::rowsPerBlock : bounds::rowsPerOutcome)) {
          state.joined.emplace_back(places, row);
          continue;
        }
        if (isFirst)
          like = state.joined.begin();
      }
      Row &target = like->second;
      target = joinRows(target, row, phi());
      row = target;
    }
  rows.erase(std::remove_if(rows.begin(), rows.end(),
                            [&](const Row &row) { return !state.seen.insert(row.digest()).second; }),
             rows.end());
  if (!isWithin(state.visits, 4 * bounds::visitsPerBlock, Bound::VisitsOfBlock))
    rows.clear();
}

Outcomes Machine::run(Frame &frame, Row row) {
  const Function &function = frame.function;
  Outcomes outcomes;
  if (function.blocks.empty())
    return outcomes;
  entered.insert(&function);
  ++solution.stats.contexts;
  const std::vector<BlockId> &position = order(function);
  std::vector<BlockState> states(function.blocks.size());
  std::vector<bool> *const reachedHere = frame.site || otherwise ? nullptr : &reached[&function];
  if (reachedHere)
    reachedHere->resize(function.blocks.size());
  row.registers.clear();
  if (FactObserver *const observer = frame.site ? nullptr : facts)
    observer->begin(frame, row);
  states[0].pending.push_back(std::move(row));
  std::set<std::pair<BlockId, BlockId>> work{{position[0], 0}};
  while (!work.empty()) {
    const BlockId id = work.begin()->second;
    work.erase(work.begin());
    std::vector<Row> rows = std::move(states[static_cast<std::size_t>(id)].pending);
    states[static_cast<std::size_t>(id)].pending.clear();
    enterBlock(frame, id, rows, states[static_cast<std::size_t>(id)]);
    if (rows.empty())
      continue;
    frame.block = id;
    if (reachedHere)
      (*reachedHere)[static_cast<std::size_t>(id)] = true;
    if (otherwise == &function && frame.depth == 0 && !reached[otherwise][static_cast<std::size_t>(id)])
      for (Row &each : rows)
        each.isOtherWay = true;
    runBlock(frame, id, std::move(rows), states, outcomes);
    const Block &block = function.blocks[static_cast<std::size_t>(id)];
    auto enqueue = [&](BlockId to) {
      if (to >= 0 && !states[static_cast<std::size_t>(to)].pending.empty())
        work.emplace(position[static_cast<std::size_t>(to)], to);
    };
    for (BlockId to : block.terminator.successors)
      enqueue(to);
    enqueue(block.handler);
    // What is called takes no more than an entry may; then the entry itself is run to its end.
    if (!isWithin(factsRun, frame.depth == 0 ? 2 * mostFacts : mostFacts, Bound::FactsOfEntry))
      break;
    if (stop && *stop)
      break;
  }
  return outcomes;
}

namespace {

// Operators that make or move tensors: where they fail no tensor is on a GPU, and nothing meets it there.
bool onlyPlaces(models::Rule rule) {
  using models::Rule;
  return rule == Rule::Host || rule == Rule::Factory || rule == Rule::Blob || rule == Rule::Like ||
         rule == Rule::Move || rule == Rule::ToCpu || rule == Rule::ToCuda || rule == Rule::TypeAs;
}

} // namespace

// Can this fact end in a catch clause? Assignments, accessors and the standard library's plumbing are taken
// not to throw; a call that always throws is seen when it is run.
bool Machine::mayThrow(const Fact &fact) {
  if (fact.kind != FactKind::Call && fact.kind != FactKind::Construct)
    return false;
  const Function *callee = fact.target.empty() ? nullptr : program.function(fact.target);
  if (callee && callee->hasBody && !fact.isVirtual)
    return mayThrow(*callee);
  const std::string_view name = fact.name.view(), scope = firstScope(name);
  if (!fact.target.empty() && !models::hasRole(scope, "library"))
    return true;
  if (isAssignment(name) || isReserved(name) || models::hasRole(scope, "no_throw"))
    return false;
  const models::Op *op = models::atenOp(lastPart(name), version);
  return !(op && onlyPlaces(op->rule));
}

bool Machine::mayThrow(const Function &function) {
  const auto [known, isNew] = throwing.try_emplace(&function, false);
  if (!isNew)
    return known->second;
  bool throws = false;
  for (const Block &block : function.blocks)
    throws |= block.handler < 0 &&
              (block.terminator.kind == TerminatorKind::Unreachable ||
               std::any_of(
                   block.facts.begin(), block.facts.end(), [&](const Fact &fact) { return mayThrow(fact); }));
  return throwing[&function] = throws;
}

namespace {

// Has a lookup found what it was asked for?
bool hasFound(const Fact &fact, const std::vector<Row> &after) {
  const std::string_view name = fact.name.view();
  return (models::hasRole(name, "lookup") || models::hasRole(scopeOf(name), "lookup")) &&
         std::none_of(after.begin(), after.end(), [&](const Row &row) {
           return is(row.registers[static_cast<std::size_t>(fact.result)], ValueKind::Unknown);
         });
}

// A fact that ends its row (an operation that throws) is told with what it was given.
void noteStep(FactObserver &observer, const Frame &frame, const Fact &fact, const Row &before,
              const std::vector<Row> &after) {
  if (after.empty())
    observer.step(frame, fact, before);
  for (const Row &row : after)
    observer.step(frame, fact, row);
}

} // namespace

void Machine::runBlock(Frame &frame, BlockId id, std::vector<Row> rows, std::vector<BlockState> &states,
                       Outcomes &outcomes) {
  const Block &block = frame.function.blocks[static_cast<std::size_t>(id)];
  auto phi = [&] { return symbolTerm(Name("in " + blockName(frame.function, id))); };
  auto reachHandler = [&](const Row &row, bool isCertain) {
    if (block.handler < 0)
      return;
    Row thrown = row;
    thrown.registers.clear();
    if (!isCertain)
      thrown.assume(raisedCondition().first, raisedCondition().second);
    states[static_cast<std::size_t>(block.handler)].pending.push_back(std::move(thrown));
  };
  FactObserver *const observer = frame.site ? nullptr : facts;
  for (const Fact &fact : block.facts) {
    const bool throws = block.handler >= 0 && mayThrow(fact);
    std::size_t stepped = 0;
    while (!observer && block.handler < 0 && stepped < rows.size() && stepInPlace(frame, fact, rows[stepped]))
      ++stepped;
    factsRun += stepped;
    if (stepped == rows.size())
      continue;
    std::vector<Row> next(std::make_move_iterator(rows.begin()),
                          std::make_move_iterator(rows.begin() + static_cast<std::ptrdiff_t>(stepped)));
    for (std::size_t i = stepped; i < rows.size(); ++i) {
      Row &row = rows[i];
      ++factsRun;
      const std::optional<Row> before = observer || block.handler >= 0 ? std::optional(row) : std::nullopt;
      std::vector<Row> after = step(frame, fact, std::move(row));
      if (before && (after.empty() || (throws && !hasFound(fact, after))))
        reachHandler(*before, after.empty());
      if (observer)
        noteStep(*observer, frame, fact, *before, after);
      if (next.empty())
        next = std::move(after);
      else
        std::move(after.begin(), after.end(), std::back_inserter(next));
    }
    rows = std::move(next);
    if (rows.size() > bounds::rowsPerBlock)
      solution.stats.rowsLeftOut +=
          mergeRows(rows, bounds::rowsBeforeScalarsMerge, bounds::rowsPerBlock, phi());
    if (rows.empty())
      return;
  }
  for (Row &row : rows)
    finishBlock(frame, block, std::move(row), states, outcomes);
}

namespace {

Value terminatorValue(const Row &row, const Operand &operand) {
  const auto reg = static_cast<std::size_t>(operand.reg);
  if (operand.reg == NoReg || reg >= row.registers.size() || !row.registers[reg])
    return unknownValue();
  return row.registers[reg];
}

// Is `term` for sure something else than a truth value?
bool isNumber(Term term) {
  static const std::set<Name> operators = {"rank", "+", "-", "*", "/", "%", "<<", ">>", "size"};
  return term->kind == TermKind::Apply && operators.count(term->name);
}

// A condition as a term; null when nothing is known about it.
Term conditionTerm(const Value &value) {
  switch (value->kind) {
  case ValueKind::Scalar:
    return value->term;
  case ValueKind::Null:
    return intTerm(0);
  case ValueKind::Address:
  case ValueKind::Function:
    return intTerm(1);
  default:
    return nullptr;
  }
}

// Each case that the value may be, and the default where it may be none of them.
void takeCases(const Terminator &end, const Value &value, Row row,
               const std::function<void(BlockId, Row)> &go) {
  std::vector<Term> conditions;
  for (std::size_t i = 0; i < end.cases.size(); ++i) {
    conditions.push_back(caseTerm(row, value, end.cases[i]));
    Row taken = row;
    if (!conditions[i] || taken.assume(conditions[i], 1))
      go(end.successors[i], std::move(taken));
  }
  for (Term condition : conditions)
    if (condition && !row.assume(condition, 0))
      return;
  if (end.successors.size() > end.cases.size())
    go(end.successors.back(), std::move(row));
}

} // namespace

void Machine::finishBlock(Frame &frame, const Block &block, Row row, std::vector<BlockState> &states,
                          Outcomes &outcomes) {
  const Terminator &end = block.terminator;
  auto go = [&](BlockId to, Row next) {
    states[static_cast<std::size_t>(to)].pending.push_back(std::move(next));
  };
  Value value = terminatorValue(row, end.value);
  if (end.value.isAddress && end.kind != TerminatorKind::Return)
    value = memory.read(row, value->address);
  const KnownIterations iterations = end.entersLoop ? knownIterations(block, row) : KnownIterations();
  if (row.expressionEnded) {
    row.registers.clear();
    row.expressionEnded = false;
  }
  switch (end.kind) {
  case TerminatorKind::Unreachable:
    return;
  case TerminatorKind::Jump:
    go(end.successors[0], std::move(row));
    return;
  case TerminatorKind::Return: {
    if (end.value.isAddress && !frame.function.resultIsReference && is(value, ValueKind::Address))
      value = memory.read(row, value->address);
    row.registers.clear();
    outcomes.push_back({std::move(row), std::move(value)});
    return;
  }
  case TerminatorKind::Branch: {
    Term condition = conditionTerm(value);
    // A number, or the text of the rank, as a condition: that it is not zero says nothing more of its value.
    static const Name boolType("bool");
    const bool isBool = end.value.type == boolType || end.value.type.empty();
    if (condition && (isNumber(condition) || (!isBool && !constantOf(condition) &&
                                              types.classOf(end.value.type) == TypeClass::Scalar)))
      condition = asAvailability(applyTerm(op::unequal, {condition, intTerm(0)}));
    if (condition)
      condition = row.resolve(condition);
    const auto constant = condition ? constantOf(row.resolve(row.pinned(condition))) : std::nullopt;
    if (constant || end.entersLoop) {
      const bool taken = constant ? *constant != 0 : true;
      countIterations(frame, end, row, iterations, constant.has_value() && taken);
      if (!constant && condition && !row.assume(condition, 1))
        return;
      go(end.successors[taken ? 0 : 1], std::move(row));
      return;
    }
    countIterations(frame, end, row, {}, false);
    Row otherwise = row;
    if (!condition || row.assume(condition, 1))
      go(end.successors[0], std::move(row));
    if (!condition || otherwise.assume(condition, 0))
      go(end.successors[1], std::move(otherwise));
    return;
  }
  case TerminatorKind::Switch:
    takeCases(end, value, std::move(row), go);
    return;
  }
}

} // namespace devicetidy
