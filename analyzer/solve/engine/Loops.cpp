//===- Loops.cpp - iterations of loops ------------------------------===//
//
// A loop is run once for "any iteration", whose number is a symbol, unless it is known how often it runs and
// that is not often: then its iterations are run one by one.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/domain/Answers.h"
#include "analyzer/solve/domain/Positions.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/engine/Library.h"
#include "analyzer/solve/engine/Machine.h"
#include "analyzer/solve/engine/Operators.h"

#include <algorithm>

namespace devicetidy {
namespace {

const Name boolType("bool");

// This iteration's value of a loop variable becomes the previous iteration's.
Term renameIteration(Term term, Term current, Term previous) {
  if (term == previous)
    return term;
  if (term == current)
    return previous;
  if (!marks::include(term->marks, current->marks))
    return term;
  std::vector<Term> args;
  for (Term arg : term->args)
    args.push_back(renameIteration(arg, current, previous));
  return args == term->args ? term : applyTerm(term->name, std::move(args));
}

} // namespace

void startIteration(Row &row, Term current) {
  const Term previous = applyTerm(op::previous, {current});
  auto rewrite = [&](Term term) { return renameIteration(term, current, previous); };
  std::vector<std::pair<RootId, Value>> changed;
  row.store.forEach(
      [&](RootId root, const Value &value) {
        Value next = rewriteTerms(value, rewrite, current->marks);
        if (next != value)
          changed.emplace_back(root, next);
      },
      current->marks);
  for (auto &[root, value] : changed)
    row.store.set(root, value);
  row.forgetConditions([&](Term term) { return contains(term, current); });
  auto mentions = [&](const auto &entry) { return contains(entry.first, current); };
  row.aliases.erase(std::remove_if(row.aliases.begin(), row.aliases.end(), mentions), row.aliases.end());
}

// The innermost loop head around each block, -1 for none: the natural loops of the back edges, inner ones
// last.
const std::vector<BlockId> &Machine::loopHeads(const Function &function) {
  std::vector<BlockId> &result = heads[&function];
  if (!result.empty())
    return result;
  const std::size_t count = function.blocks.size();
  result.assign(count, -1);
  const std::vector<BlockId> &position = order(function);
  std::vector<std::vector<BlockId>> predecessors(count);
  std::vector<std::pair<BlockId, BlockId>> headsByOrder;
  for (std::size_t id = 0; id < count; ++id) {
    for (BlockId to : function.blocks[id].terminator.successors)
      predecessors[static_cast<std::size_t>(to)].push_back(static_cast<BlockId>(id));
    if (function.blocks[id].isLoopHead)
      headsByOrder.emplace_back(position[id], static_cast<BlockId>(id));
  }
  std::sort(headsByOrder.begin(), headsByOrder.end());
  for (const auto &[at, head] : headsByOrder) {
    std::vector<BlockId> work;
    for (BlockId from : predecessors[static_cast<std::size_t>(head)])
      if (position[static_cast<std::size_t>(from)] >= at)
        work.push_back(from);
    std::set<BlockId> body{head};
    while (!work.empty()) {
      const BlockId id = work.back();
      work.pop_back();
      if (position[static_cast<std::size_t>(id)] < at || !body.insert(id).second)
        continue;
      for (BlockId from : predecessors[static_cast<std::size_t>(id)])
        work.push_back(from);
    }
    for (BlockId id : body)
      result[static_cast<std::size_t>(id)] = head;
  }
  return result;
}

Term Machine::iterationOf(const Frame &frame, const Row &row) {
  if (frame.hasFixedIteration)
    return frame.fixedIteration;
  Term own = row.iterations
                 ? row.iterationOf(loopHeads(frame.function)[static_cast<std::size_t>(frame.block)])
                 : nullptr;
  return own ? own : frame.fixedIteration;
}

namespace {

bool isRangeHead(const Block &block) {
  static const Name next("__range_next");
  return std::any_of(block.facts.begin(), block.facts.end(),
                     [](const Fact &fact) { return fact.name == next; });
}

// The number that a test compares: a scalar's, or the one an iterator or pointer stands at.
std::optional<std::int64_t> numberIn(const Machine &machine, const Row &row, const Operand &operand) {
  Value value = registerOf(row, operand.reg);
  if (operand.isAddress && is(value, ValueKind::Address))
    value = machine.memory.read(row, value->address);
  if (is(value, ValueKind::Scalar))
    return row.numberOf(value);
  return machine.library.hooks.ordinalOf(machine, row, asPosition(machine.memory, row, value));
}

const Fact *factOf(const Block &block, Reg result) {
  const auto found = std::find_if(block.facts.rbegin(), block.facts.rend(),
                                  [&](const Fact &fact) { return fact.result == result; });
  return result == NoReg || found == block.facts.rend() ? nullptr : &*found;
}

// The locals a condition asks about; its facts are in one block, where later ones use registers again.
void markTested(const Block &block, std::size_t end, Reg reg, std::vector<bool> &tested) {
  while (reg != NoReg && end-- > 0) {
    const Fact &fact = block.facts[end];
    if (fact.result != reg)
      continue;
    if (fact.kind == FactKind::Local)
      tested[static_cast<std::size_t>(fact.number)] = true;
    else if (fact.kind == FactKind::Operator || fact.kind == FactKind::Load)
      for (const Operand &operand : fact.operands)
        markTested(block, end, operand.reg, tested);
    return;
  }
}

// The conditions that say something of `subject` and a number.
std::vector<Condition> knownOf(const Row &row, Term subject) {
  std::vector<Condition> found;
  for (const Condition &condition : row.known) {
    const Term term = condition.first;
    if (term->kind == TermKind::Apply && term->args.size() == 2 &&
        ((term->args[0] == subject && constantOf(term->args[1])) ||
         (term->args[1] == subject && constantOf(term->args[0]))))
      found.push_back(condition);
  }
  return found;
}

// `value` is what `subject` was in the iteration before and a positive number more.
bool isGrown(Term value, Term subject) {
  if (value->kind != TermKind::Apply || value->name != op::plus || value->args.size() != 2)
    return false;
  const auto left = constantOf(value->args[0]), right = constantOf(value->args[1]);
  return (value->args[0] == subject && right && *right > 0) ||
         (value->args[1] == subject && left && *left > 0);
}

bool isScalarType(const Types &types, Name type) {
  const TypeClass kind = types.classOf(type);
  return kind == TypeClass::Scalar || kind == TypeClass::Device;
}

// An iterator that a loop moves.
bool standsSomewhere(const Value &value) {
  return isPosition(value) || (isReversed(value) && isPosition(baseOf(value)));
}

// The same iterator at the element of number `current`.
Value standingAtNumber(const Value &iterator, Term current) {
  if (isReversed(iterator)) {
    const Address base = baseOf(iterator)->address;
    return reversed(addressValue(sequenceOf(base).element(applyTerm(op::plus, {current, intTerm(1)}))));
  }
  return addressValue(sequenceOf(iterator->address).element(current));
}

// Where control goes from `id`, past the blocks in which temporaries of a test end.
BlockId headBehind(const Function &function, BlockId id) {
  auto blockAt = [&](BlockId at) -> const Block & { return function.blocks[static_cast<std::size_t>(at)]; };
  auto onlyEnds = [](const Block &block) {
    return !block.isLoopHead && block.terminator.kind == TerminatorKind::Jump &&
           std::all_of(block.facts.begin(), block.facts.end(), [](const Fact &fact) {
             return fact.kind == FactKind::EndScope || fact.kind == FactKind::EndStatement;
           });
  };
  for (std::size_t steps = 0; steps < function.blocks.size() && onlyEnds(blockAt(id)); ++steps)
    id = blockAt(id).terminator.successors[0];
  return id;
}

// `iterator` as it is in the hands of a loop that comes to every element once.
Value comingToEach(const Machine &machine, const Row &row, const Value &iterator) {
  if (!mapAround(machine.memory, row, iterator))
    return iterator;
  const MapPlace place = placeOf(iterator->address.path->field);
  return place.standing != Standing::Some
             ? iterator
             : addressValue(sequenceOf(iterator->address).field(fieldOf({place.key, Standing::Each})));
}

// What is known of a loop variable in the next iteration, where it is `value`: its number in the first
// iteration, which later iterations have left behind when it only grows, and what it is as long as no
// iteration changes it.
std::vector<Condition> knownInNextIteration(const Row &row, Term subject, Term value) {
  const std::vector<Condition> known = knownOf(row, subject);
  if (value == subject)
    return known;
  std::optional<std::int64_t> first, passed;
  for (const auto &[term, holds] : known)
    if (term->name == op::equal && holds == 1)
      first = constantOf(term->args[constantOf(term->args[0]) ? 0 : 1]);
    else if (term->name == op::less && term->args[1] == subject && holds == 1)
      passed = constantOf(term->args[0]);
  if (constantOf(value)) // the loop is entered
    return {{applyTerm(op::equal, {subject, value}), 1}};
  if (!isGrown(value, subject) || (!first && !passed))
    return {};
  return {{applyTerm(op::less, {intTerm(first ? *first : *passed), subject}), 1}};
}

} // namespace

// The locals that some condition asks about, tests of loops aside.
const std::vector<bool> &Machine::testedLocals(const Function &function) {
  std::vector<bool> &result = tested[&function];
  if (!result.empty() || function.locals.empty())
    return result;
  result.assign(function.locals.size(), false);
  for (const Block &block : function.blocks) {
    const Terminator &end = block.terminator;
    const bool isLoopTest = end.kind == TerminatorKind::Branch &&
                            function.blocks[static_cast<std::size_t>(end.successors[0])].isLoopHead;
    if ((end.kind == TerminatorKind::Branch || end.kind == TerminatorKind::Switch) && !isLoopTest)
      markTested(block, block.facts.size(), end.value.reg, result);
  }
  return result;
}

void Machine::varyLoop(Frame &frame, BlockId id, Row &row) {
  const Block &block = frame.function.blocks[static_cast<std::size_t>(id)];
  const bool isRange = isRangeHead(block);
  for (std::int32_t local : block.variesInLoop) {
    const Term symbol = symbolTerm(Name(blockName(frame.function, id) + "#" + std::to_string(local) + "@" +
                                        std::to_string(frame.depth)));
    const Term current = applyTerm(op::loop, {symbol});
    const Variable &variable = frame.function.locals[static_cast<std::size_t>(local)];
    const RootId root = memory.local(frame.depth, static_cast<unsigned>(local), variable);
    const Value old = row.store.get(root);
    const bool isIterator = old && !variable.isReference && standsSomewhere(old);
    if (!isIterator && !isScalarType(types, variable.type))
      continue;
    const bool isScalar = old && is(old, ValueKind::Scalar);
    const bool isFlag = variable.type == boolType && isScalar && constantOf(old->term);
    std::vector<Condition> next;
    if (isScalar && !isFlag && testedLocals(frame.function)[static_cast<std::size_t>(local)])
      next = knownInNextIteration(row, current, old->term);
    startIteration(row, current);
    if (!isRange)
      row.setIteration(id, row.iterationOf(id) ? row.iterationOf(id) : current);
    // A flag has two values: its iterations repeat by themselves.
    if (isIterator)
      row.store.set(root, standingAtNumber(old, current));
    else if (!variable.isReference && !isFlag && (!old || isScalar || is(old, ValueKind::Unknown)))
      row.store.set(root, scalarValue(current));
    // Conditions only: the variable keeps its name, so that what is made of it stands for any iteration.
    for (const Condition &condition : next)
      row.learn(condition);
  }
  keepAnswers(row);
}

// Set in a row while the iterations of this loop are run one by one, for the row knows their number.
RootId Machine::countedFlag(const Frame &frame, BlockId head) {
  return memory.noted(frame.depth, Name("counted " + blockName(frame.function, head)));
}

std::size_t Machine::enterLoop(Frame &frame, BlockId head, std::vector<Row> &rows) {
  const Block &block = frame.function.blocks[static_cast<std::size_t>(head)];
  const bool isRange = isRangeHead(block); // what it varies is seen at its next element
  bool isCounted = false;
  const RootId flag = countedFlag(frame, head);
  for (Row &row : rows)
    if (row.store.get(flag))
      isCounted = true;
    else if (!isRange)
      varyLoop(frame, head, row);
  if (isRange)
    return bounds::visitsBeforeWidening + (isCounted ? bounds::unrolledInComprehension : 0);
  return isCounted ? 8 * bounds::visitsBeforeWidening : bounds::visitsBeforeWidening;
}

// The iterations the test before a loop promises, when it compares two known numbers; none when it does not.
Machine::KnownIterations Machine::knownIterations(const Block &block, const Row &row) const {
  const Fact *test = factOf(block, block.terminator.value.reg);
  bool isNegated = false;
  for (; test && test->kind == FactKind::Operator && test->name == op::negation; isNegated = !isNegated)
    test = factOf(block, test->operands[0].reg);
  if (!test || (test->kind != FactKind::Operator && test->kind != FactKind::Call))
    return {};
  if (test->hasObject && test->operands.size() == 1) { // `while (!list.empty())`
    const Value list = memory.read(row, registerOf(row, test->operands[0].reg)->address);
    return is(list, ValueKind::List) && !isSummary(list)
               ? KnownIterations{static_cast<std::int64_t>(list->elements.size()), 0}
               : KnownIterations();
  }
  if (test->operands.size() != 2)
    return {};
  const auto left = numberIn(*this, row, test->operands[0]), right = numberIn(*this, row, test->operands[1]);
  if (!left || !right)
    return {};
  Name comparison = test->kind == FactKind::Operator ? test->name : overloadedBy(test->name);
  if (isNegated && comparison == op::equal)
    comparison = op::unequal;
  const bool isInclusive = comparison == op::lessOrEqual || comparison == op::greaterOrEqual;
  if (!isInclusive && comparison != op::less && comparison != op::greater && comparison != op::unequal)
    return {};
  const auto [least, most] = std::minmax(*left, *right);
  return {most - least + isInclusive, most + isInclusive};
}

// The loop may take elements by number of a list whose length is not known (the pieces of a tensor): then the
// list has as many as the loop asks for. False when its elements are not alike: what is written to one of
// them would be lost among the others, where the loop that is run for any iteration writes all.
bool Machine::closeLists(const Frame &frame, BlockId head, Row &row, std::int64_t length) {
  const std::vector<BlockId> &innermost = loopHeads(frame.function);
  auto listAt = [&](const Block &block, const Operand &operand) {
    const auto maker = std::find_if(block.facts.begin(), block.facts.end(),
                                    [&](const Fact &fact) { return fact.result == operand.reg; });
    if (maker == block.facts.end())
      return Address();
    if (maker->kind == FactKind::Field && frame.self.valid())
      return frame.self.field(maker->name);
    if (maker->kind != FactKind::Local)
      return Address();
    const auto index = static_cast<unsigned>(maker->number);
    const Variable &variable = frame.function.locals[index];
    const Address local{memory.local(frame.depth, index, variable), nullptr};
    const Value held = row.store.get(local.root);
    return variable.isReference && held && is(held, ValueKind::Address) ? held->address : local;
  };
  std::vector<std::pair<Address, Value>> closed; // written when the loop is counted for certain
  for (std::size_t id = 0; id < innermost.size(); ++id) {
    if (innermost[id] != head)
      continue;
    const Block &block = frame.function.blocks[id];
    for (const Fact &fact : block.facts) {
      const bool takesElement = fact.kind == FactKind::Call && fact.hasObject && fact.operands.size() == 2 &&
                                types.classOf(fact.operands[0].type) == TypeClass::List &&
                                effectOf(*this, fact, "list_element");
      if (!takesElement)
        continue;
      const Address list = listAt(block, fact.operands[0]);
      const Value open = list.valid() ? memory.read(row, list) : unknownValue();
      if (!isSummary(open))
        continue;
      if (open->summary.size() > 1 || open->term || !is(open->summary[0], ValueKind::Tensor))
        return false;
      std::vector<Value> elements;
      for (std::int64_t i = 0; i < length; ++i)
        elements.push_back(substitute(open->summary[0], elementIndex(), intTerm(i)));
      closed.emplace_back(list, listValue(open->type, std::move(elements)));
    }
  }
  for (const auto &[list, elements] : closed)
    memory.write(row, list, elements);
  return true;
}

void Machine::markOneByOne(const Frame &frame, Row &row, bool isSo) {
  const Block &block = frame.function.blocks[static_cast<std::size_t>(frame.block)];
  const RootId flag = countedFlag(frame, headBehind(frame.function, block.terminator.successors[0]));
  if (isSo)
    row.store.set(flag, scalarValue(intTerm(1)));
  else
    row.store.erase(flag);
}

void Machine::countIterations(const Frame &frame, const Terminator &test, Row &row,
                              KnownIterations iterations, bool isKnown) {
  const BlockId head = headBehind(frame.function, test.successors[0]);
  const Block &block = frame.function.blocks[static_cast<std::size_t>(head)];
  if (!block.isLoopHead || isRangeHead(block))
    return;
  const RootId flag = countedFlag(frame, head);
  const std::int64_t most = frame.site ? std::int64_t(bounds::knownElements) : bounds::countedIterations;
  if (test.entersLoop && isKnown && iterations.count > 0 && iterations.count <= most &&
      closeLists(frame, head, row, iterations.end)) {
    row.store.set(flag, scalarValue(intTerm(1)));
    row.setIteration(head, nullptr);
    for (std::int32_t local : block.variesInLoop) {
      const auto index = static_cast<unsigned>(local);
      const RootId root = memory.local(frame.depth, index, frame.function.locals[index]);
      if (const Value old = row.store.get(root))
        row.store.set(root, comingToEach(*this, row, old));
    }
  } else if (test.entersLoop || !isKnown) {
    row.store.erase(flag);
  }
}

} // namespace devicetidy
