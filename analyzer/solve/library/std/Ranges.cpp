//===- Ranges.cpp - range-for ---===//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/library/std/Ranges.h"
#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/Positions.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/engine/Library.h"
#include "analyzer/solve/engine/ModelBodies.h"
#include "analyzer/solve/library/std/Containers.h"
#include "analyzer/solve/library/std/Views.h"
#include "analyzer/solve/library/std/Words.h"

#include <algorithm>

namespace devicetidy {

namespace {

std::string iteratorKey(const Call &call, const Address &range) {
  return call.frame.function.id.str() + "@" + std::to_string(call.frame.depth) + "@" +
         std::to_string(range.root) + "@" + std::to_string(range.path ? range.path->hash : 0);
}

// What a range of the program's own hands out in any iteration: what `*range.begin()` is.
std::optional<Outcomes> elementOfOwnRange(Call &call, const Address &range, Name type) {
  Machine &machine = call.machine;
  const Function *begin = range.valid() ? findMethod(machine, type, "begin") : nullptr;
  if (!begin)
    return std::nullopt;
  Outcomes elements;
  for (Outcome &begun : machine.invoke(call.frame, call.fact, call.row, *begin, range, {})) {
    const Function *dereference = findMethod(machine, begin->resultType, "operator*");
    if (!dereference)
      return std::nullopt;
    const Address iterator = machine.allocate(begun.row, call.frame, call.fact, begin->resultType);
    machine.memory.write(begun.row, iterator, begun.result);
    for (Outcome &taken :
         machine.invoke(call.frame, call.fact, std::move(begun.row), *dereference, iterator, {})) {
      if (!dereference->resultIsReference || !is(taken.result, ValueKind::Address)) {
        const Address element = machine.allocate(taken.row, call.frame, call.fact, call.resultType());
        machine.memory.write(taken.row, element, taken.result);
        taken.result = addressValue(element);
      }
      elements.push_back(std::move(taken));
    }
  }
  return elements;
}

// What modules() and named_modules() give: who asks for it looks for the few that he changes.
bool areModules(const Call &call, const Value &list) {
  return is(list, ValueKind::List) && !isSummary(list) &&
         std::all_of(list->elements.begin(), list->elements.end(), [&](const Value &element) {
           const Value module = is(element, ValueKind::Record) && element->fields.count("second")
                                    ? element->fields.at("second")
                                    : element;
           return is(module, ValueKind::Address) &&
                  call.machine.types.isModule(call.machine.memory.read(call.row, module->address)->type);
         });
}

// A part of a sequence that is known.
struct Part {
  std::int64_t from = 0;
  std::size_t count = 0;
};

// Of a view with a known part of a sequence: puts the sequence in its place, and says which part it is. A
// view that is not known so well is all of its sequence, or may change any of it.
std::optional<Part> lookThroughView(Call &call, Address &range, Value &list) {
  if (!isView(list))
    return std::nullopt;
  const Value count = scalarValue(countOf(list));
  const auto from = call.row.numberOf(scalarValue(numberAt(beginOf(list))));
  const auto number = call.row.numberOf(count);
  range = sequenceOf(beginOf(list));
  list = call.machine.memory.read(call.row, range);
  const bool isKnown = is(list, ValueKind::List) && !isSummary(list);
  if (isKnown && from && number && *from >= 0 && *number >= 0 &&
      static_cast<std::size_t>(*from + *number) <= list->elements.size())
    return Part{*from, static_cast<std::size_t>(*number)};
  const bool isWhole = from == 0 && is(list, ValueKind::List) &&
                       call.row.resolve(count->term) == call.row.resolve(sizeTerm(list, range));
  if (!isWhole) {
    call.machine.memory.write(call.row, range, unknownValue());
    list = unknownValue();
  }
  return std::nullopt;
}

} // namespace

// Range-for: lists of a few known elements are run element by element; others once for "any element", whose
// index is a loop variable.
Outcomes rangeCall(Call &call) {
  Machine &machine = call.machine;
  Memory &memory = machine.memory;
  const Types &types = machine.types;
  Address range = call.addressOf(0);
  Value list = call.operand(0);
  // A pointer to a container (a data loader held by a smart pointer): look through it.
  if (is(list, ValueKind::Address)) {
    range = list->address;
    list = memory.read(call.row, range);
  }
  const std::optional<Part> part = lookThroughView(call, range, list);
  // A container module is iterated over its modules.
  if (is(list, ValueKind::Record) && list->fields.count(hidden::children)) {
    range = range.field(hidden::children);
    list = memory.read(call.row, range);
  }
  static const Name hasNext("__range_has_next");
  const bool test = call.fact.name == hasNext;
  const bool isMap = is(list, ValueKind::Record) && types.classOf(list->type) == TypeClass::Map;
  const std::vector<Name> keys = isMap ? mapKeys(types, list) : std::vector<Name>();
  const std::size_t size = isMap ? keys.size() : part ? part->count : list->elements.size();
  const std::size_t most =
      areModules(call, list) ? bounds::unrolledInComprehension : unrolledElements(call.frame.function);
  const bool known = size <= most && (isMap ? size > 0 : is(list, ValueKind::List) && !isSummary(list));
  const RootId counter = memory.noted(call.frame.depth, Name("iterator " + iteratorKey(call, range)));
  const Block &block = call.frame.function.blocks[static_cast<std::size_t>(call.frame.block)];
  Value position =
      test && block.terminator.entersLoop ? scalarValue(intTerm(0)) : call.row.store.get(counter);
  // The counter lives as long as the loop: rows after it are not to differ by it.
  if (test)
    call.row.store.erase(counter);
  const bool isOneByOne = known && position && constantOf(position->term);
  const bool more = isOneByOne && *constantOf(position->term) < static_cast<std::int64_t>(size);
  if (test)
    machine.markOneByOne(call.frame, call.row, more);
  if (isOneByOne) {
    const std::int64_t at = *constantOf(position->term);
    if (test && more)
      call.row.store.set(counter, position);
    if (test)
      return call.done(scalarValue(intTerm(more)));
    call.row.store.set(counter, scalarValue(intTerm(at + 1)));
    if (isMap)
      return call.done(addressValue(range.field(keys[static_cast<std::size_t>(at) % size])));
    return call.done(addressValue(range.element(intTerm((part ? part->from : 0) + at))));
  }
  if (test)
    return call.done(unknownValue());
  machine.varyLoop(call.frame, call.frame.block, call.row);
  const Term iteration = applyTerm(op::loop, {symbolTerm(Name(iteratorKey(call, range)))});
  startIteration(call.row, iteration);
  call.row.setIteration(machine.loopHeads(call.frame.function)[static_cast<std::size_t>(call.frame.block)],
                        iteration);
  if (is(list, ValueKind::List) && list->summary.size() > 1)
    return elementAt(call, range, list, iteration);
  if (is(list, ValueKind::List))
    return call.done(addressValue(range.element(iteration)));
  if (isMap && range.valid()) {
    if (const std::optional<Address> entry = anyEntry(call, range, list))
      return call.done(addressValue(*entry));
    forgetEntries(machine, call.row, range, list);
  }
  if (is(list, ValueKind::Record) && types.isProject(list->type))
    if (std::optional<Outcomes> elements = elementOfOwnRange(call, range, list->type))
      return std::move(*elements);
  // A data loader or an unknown container: its element type says what can be in it.
  Address element = machine.allocate(call.row, call.frame, call.fact, call.resultType());
  Value batch = is(list, ValueKind::Record) && list->fields.count(hidden::batch)
                    ? list->fields.at(hidden::batch)
                    : unknownValue();
  if (types.classOf(call.resultType()) == TypeClass::List && !is(batch, ValueKind::List))
    batch = is(batch, ValueKind::Unknown) ? batch : summaryList(call.resultType(), {batch});
  memory.write(call.row, element, machine.library.hooks.takenBatch(call, batch));
  return call.done(addressValue(element));
}

namespace {

// An algorithm of std::ranges is that of std from the begin to the end of each container.
std::optional<Outcomes> overRanges(Call &call, const models::Effect &) {
  std::vector<Argument> args;
  for (std::size_t i = 0; i < call.argCount(); ++i) {
    const Argument given = call.forwarded(i);
    if (!is(given.value, ValueKind::List) || !given.address.valid()) {
      args.push_back(given);
      continue;
    }
    const Term size = call.row.resolve(sizeTerm(given.value, given.address));
    args.push_back({addressValue(given.address.element(intTerm(0))), {}});
    args.push_back({addressValue(given.address.element(size)), {}});
  }
  Fact plain;
  plain.name = Name("std::" + std::string(lastPart(call.fact.name.view())));
  for (const ModelName &model : call.machine.modelsOf(plain))
    if (std::optional<Outcomes> outcomes = runBody(call, model.bodies, args))
      return outcomes;
  return std::nullopt;
}

} // namespace

Words rangeWords() { return {{{"over_ranges", overRanges}}, {}, {}}; }

} // namespace devicetidy
