//===- Containers.cpp - lists: how they are kept and made ---===//
#include "analyzer/solve/library/std/Containers.h"

#include "analyzer/solve/domain/Ends.h"
#include "analyzer/solve/domain/Joins.h"
#include "analyzer/solve/domain/Positions.h"
#include "analyzer/solve/domain/TensorMemory.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/std/Words.h"

#include <algorithm>

namespace devicetidy {

namespace {

// A class of the library that stands for a number which has no address of its own.
bool isProxy(const Call &call, Name type) {
  const TypeClass kind = call.machine.types.classOf(type);
  const Name inner = call.machine.types.inner(call.fact.operands[0].type);
  return (kind == TypeClass::Record || kind == TypeClass::Other) && type != inner &&
         call.machine.types.classOf(inner) == TypeClass::Scalar && !call.machine.types.isProject(type);
}

// Does the expression that `call` is part of write to what it gives?
bool isWrittenTo(const Call &call) {
  const Block &block = call.frame.function.blocks[static_cast<std::size_t>(call.frame.block)];
  const auto end = block.facts.data() + block.facts.size();
  if (&call.fact < block.facts.data() || &call.fact >= end) // called on the program's behalf
    return true;
  for (const Fact *fact = &call.fact + 1; fact != end && fact->kind != FactKind::EndStatement; ++fact) {
    for (std::size_t i = 0; i < fact->operands.size(); ++i)
      if (fact->operands[i].reg == call.fact.result &&
          (fact->operands[i].isWritable || (fact->kind == FactKind::Store && i == 0)))
        return true;
    if (fact->result == call.fact.result)
      return false;
  }
  return false;
}

} // namespace

// The address of element `index` of the list at `list`; one row per alternative when the index is not known.
Outcomes elementAt(Call &call, const Address &where, const Value &list, Term index) {
  index = call.row.resolve(index);
  if (!is(list, ValueKind::List) || !where.valid())
    return call.done(unknownValue());
  // What stands for an element that has no address of its own (std::vector<bool>).
  const bool givesProxy = !call.fact.resultIsAddress && call.fact.hasObject && is(list, ValueKind::List) &&
                          isProxy(call, call.fact.type);
  auto result = [&](Row &row, const Address &address) {
    if (givesProxy)
      return elementProxy(address);
    return call.fact.resultIsAddress ? addressValue(address) : call.machine.memory.read(row, address);
  };
  if (!isSummary(list) && !constantOf(index)) {
    const bool alike = std::all_of(list->elements.begin(), list->elements.end(),
                                   [&](const Value &element) { return same(element, list->elements[0]); });
    // In a loop run for any iteration, which entry it is differs from one iteration to the next: a device
    // list gives "its i-th entry".
    const bool anyIteration = applies(index, op::loop);
    const bool devices = std::all_of(list->elements.begin(), list->elements.end(), [](const Value &element) {
      return is(element, ValueKind::Device) && element->placement.kind == PlacementKind::Cuda;
    });
    const bool numbers = std::all_of(list->elements.begin(), list->elements.end(),
                                     [](const Value &element) { return is(element, ValueKind::Scalar); });
    if (!alike && anyIteration && (devices || numbers)) {
      const Term entry = applyTerm(
          op::entry, {intTerm(where.root), intTerm(static_cast<std::int64_t>(list->hash >> 1)), index});
      Value value = devices ? deviceValue(Placement::cuda(entry)) : scalarValue(entry);
      if (!call.fact.resultIsAddress)
        return call.done(value);
      Address copy = call.machine.allocate(call.row, call.frame, call.fact, call.resultType());
      call.machine.memory.write(call.row, copy, value);
      return call.done(addressValue(copy));
    }
    // A loop that is run for any iteration writes to all of them, not to the one that this row takes.
    const bool writesAny = anyIteration && call.fact.resultIsAddress && isWrittenTo(call);
    if (!alike && !writesAny && list->elements.size() <= bounds::forksPerRead) {
      Outcomes outcomes;
      for (std::size_t i = 0; i < list->elements.size(); ++i) {
        Row row = call.row;
        const Term number = intTerm(static_cast<std::int64_t>(i));
        if (row.assume(applyTerm(op::equal, {index, number}), 1))
          outcomes.push_back({row, result(row, where.element(number))});
      }
      return outcomes;
    }
  }
  if (isSummary(list) && list->summary.size() > 1 && !isOfThisIteration(list, index) &&
      !elementOfEnds(list, index)) {
    // Which alternative an index has is decided once per row.
    Outcomes outcomes;
    const Term choice = applyTerm(op::alternative, {intTerm(where.root), index});
    for (std::size_t i = 0; i < list->summary.size(); ++i) {
      if (!isWithin(i + 1, bounds::forksPerRead, Bound::AlternativesOfElement))
        break;
      Row row = call.row;
      if (!row.assume(applyTerm(op::equal, {choice, intTerm(static_cast<std::int64_t>(i))}), 1))
        continue;
      Value chosen = substitute(list->summary[i], elementIndex(), index);
      if (!call.fact.resultIsAddress) {
        outcomes.push_back({row, chosen});
        continue;
      }
      Address copy = call.machine.allocate(row, call.frame, call.fact, call.resultType());
      call.machine.memory.write(row, copy, chosen);
      outcomes.push_back({row, addressValue(copy)});
    }
    return outcomes;
  }
  return call.done(result(call.row, where.element(index)));
}

Term sizeTerm(const Value &list, const Address &where) {
  if (is(list, ValueKind::List) && !isSummary(list))
    return intTerm(static_cast<std::int64_t>(list->elements.size()));
  return applyTerm(op::size, {intTerm(where.root),
                              intTerm(static_cast<std::int64_t>(where.path ? where.path->hash >> 1 : 0)),
                              intTerm(static_cast<std::int64_t>(knownAtBegin(list) + knownAtEnd(list)))});
}

Value appended(Call &call, const Value &list, Name type, Value element) {
  if (is(list, ValueKind::Null)) // made by its default constructor
    return appended(call, listValue(type, {}), type, std::move(element));
  if (Term iteration = call.machine.iterationOf(call.frame, call.row)) {
    if (!is(list, ValueKind::List)) // which of its elements the new ones are is not known
      return summaryList(type, {unknownValue()});
    std::vector<Value> before;
    for (const auto *known : {&list->elements, &list->summary})
      before.insert(before.end(), known->begin(), known->end());
    ValueData old;
    old.kind = ValueKind::List;
    old.type = type;
    old.summary = std::move(before);
    return withElementOfIteration(makeValue(std::move(old)), generalise(element), iteration);
  }
  if (!is(list, ValueKind::List) || isSummary(list))
    return withLast(list, type, std::move(element));
  std::vector<Value> elements = list->elements;
  elements.push_back(std::move(element));
  if (!canListElements(elements.size()))
    return summaryList(type, std::move(elements));
  return listValue(type, std::move(elements));
}

Value anyOf(const std::vector<Value> &values) {
  if (values.empty())
    return unknownValue();
  Value any = values.front();
  for (const Value &value : values)
    any = joinValues(any, value, symbolTerm("an element"));
  return any;
}

Value inAnyOrder(const Value &list) {
  if (!is(list, ValueKind::List))
    return list;
  const std::vector<Value> &all = isSummary(list) ? list->summary : list->elements;
  return all.size() < 2 ? list : summaryList(list->type, {anyOf(all)});
}

namespace {

using models::Effect;

// What emplace_back returns: the element it has put at the end of `list`, which is at `where`.
Value lastElement(const Call &call, const Address &where, const Value &list) {
  if (!call.fact.resultIsAddress || !is(list, ValueKind::List))
    return unknownValue();
  if (!isSummary(list))
    return addressValue(where.element(intTerm(static_cast<std::int64_t>(list->elements.size()) - 1)));
  const Term iteration = call.machine.iterationOf(call.frame, call.row);
  return iteration && list->term == iteration ? addressValue(where.element(iteration)) : unknownValue();
}

Outcomes append(Call &call, const Value &element) {
  const Address where = call.objectAddress();
  const Value next = appended(call, call.object(), call.fact.operands[0].type, element);
  call.machine.memory.write(call.row, where, next);
  return call.done(lastElement(call, where, next));
}

std::optional<Outcomes> pushBack(Call &call, const Effect &) {
  return append(call, call.argCount() ? call.arg(call.argCount() - 1) : unknownValue());
}

// emplace_back constructs in place.
std::optional<Outcomes> emplaceBack(Call &call, const Effect &effect) {
  Machine &machine = call.machine;
  const Name inner = machine.types.inner(call.fact.operands[0].type);
  const TypeClass kind = machine.types.classOf(inner);
  const bool builds = kind == TypeClass::Record || kind == TypeClass::Holder || kind == TypeClass::Device ||
                      kind == TypeClass::Pair || kind == TypeClass::Tuple || kind == TypeClass::Example;
  const bool sameType = call.argCount() == 1 && call.fact.operands[call.first].type == inner;
  if (!builds || sameType)
    return pushBack(call, effect);
  const Address made = machine.allocate(call.row, call.frame, call.fact, inner);
  Outcomes outcomes;
  for (Row &row : machine.construct(call.frame, call.fact, call.row, inner, made, call.forwardedFrom(0))) {
    Call inRow{machine, call.frame, row, call.fact, call.first};
    for (Outcome &outcome : append(inRow, machine.memory.read(row, made)))
      outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

// Element `i` of a list of unknown length that becomes `fill` where the list was too short.
Value elementOrFill(const Value &list, std::size_t i, const Value &fill) {
  if (!is(list, ValueKind::List))
    return unknownValue();
  if (const Value known = elementOfEnds(list, intTerm(static_cast<std::int64_t>(i))))
    return known;
  std::vector<Value> all = list->summary;
  all.push_back(fill);
  return anyOf(all);
}

Value resized(const Value &list, Name type, std::optional<std::int64_t> count, const Value &fill) {
  const bool isKnown = is(list, ValueKind::List) && !isSummary(list);
  if (count && *count >= 0 && canListElements(static_cast<std::size_t>(*count))) {
    std::vector<Value> elements = isKnown ? list->elements : std::vector<Value>();
    const std::size_t known = elements.size();
    elements.resize(static_cast<std::size_t>(*count), fill);
    for (std::size_t i = known; i < elements.size() && !isKnown; ++i)
      elements[i] = elementOrFill(list, i, fill);
    return listValue(type, std::move(elements));
  }
  if (!is(list, ValueKind::List))
    return unknownValue();
  Value any = fill;
  for (const auto *known : {&list->elements, &list->summary})
    for (const Value &element : *known)
      any = anyOf({any, element});
  return summaryList(type, {any});
}

std::optional<Outcomes> resize(Call &call, const Effect &) {
  const Value fill = call.argCount() > 1 ? call.arg(1) : nullValue();
  call.machine.memory.write(
      call.row, call.objectAddress(),
      resized(call.object(), call.fact.operands[0].type, call.row.numberOf(call.arg(0)), fill));
  return call.done(unknownValue());
}

std::optional<Outcomes> clear(Call &call, const Effect &) {
  call.machine.memory.write(call.row, call.objectAddress(), listValue(call.fact.operands[0].type, {}));
  return call.done(unknownValue());
}

// A list the program itself has put things in, or the parameters of a module from outside.
bool holdsSomething(const Value &list) {
  if (knownAtBegin(list) + knownAtEnd(list) > 0)
    return true;
  return is(list, ValueKind::List) &&
         std::any_of(list->summary.begin(), list->summary.end(), [](const Value &element) {
           return element->address.valid() ||
                  (is(element, ValueKind::Tensor) && (element->placement.kind != PlacementKind::Symbol ||
                                                      element->placement.role == SymbolRole::Module));
         });
}

// `list_element(checked)` throws std::out_of_range.
std::optional<Outcomes> listElement(Call &call, const Effect &effect) {
  const Value list = call.object(), index = call.arg(0);
  const auto number = call.row.numberOf(index);
  if (!effect.args.empty() && number && is(list, ValueKind::List) && !isSummary(list) &&
      *number >= static_cast<std::int64_t>(list->elements.size()))
    return Outcomes();
  return is(index, ValueKind::Scalar) ? elementAt(call, call.objectAddress(), list, index->term)
                                      : call.done(unknownValue());
}

std::optional<Outcomes> frontElement(Call &call, const Effect &) {
  return elementAt(call, call.objectAddress(), call.object(), intTerm(0));
}

std::optional<Outcomes> backElement(Call &call, const Effect &) {
  const Value list = call.object();
  const Address where = call.objectAddress();
  const Term size = sizeTerm(list, where);
  const Term iteration = call.machine.iterationOf(call.frame, call.row);
  if (iteration && is(list, ValueKind::List) && list->term == iteration)
    return elementAt(call, where, list, iteration);
  const Term last = constantOf(size) ? applyTerm(op::minus, {size, intTerm(1)}) : applyTerm(op::back, {size});
  return elementAt(call, where, list, last);
}

std::optional<Outcomes> listSize(Call &call, const Effect &) {
  return call.done(scalarValue(call.row.resolve(sizeTerm(call.object(), call.objectAddress()))));
}

// One filled by a loop or a module is not empty: loops are meant to run.
std::optional<Outcomes> listIsEmpty(Call &call, const Effect &) {
  const Value list = call.object();
  if (holdsSomething(list))
    return call.done(scalarValue(intTerm(0)));
  const Term size = sizeTerm(list, call.objectAddress());
  return call.done(scalarValue(call.row.resolve(applyTerm(op::equal, {size, intTerm(0)}))));
}

// std::array<T, N> before anything is put in.
std::optional<Outcomes> makeArray(const Making &making, const Effect &) {
  const Types &types = making.call.machine.types;
  const Type *type = types.program.type(making.type);
  const Name inner = types.inner(making.type);
  const TypeClass kind = types.classOf(inner);
  const bool isRecord = kind == TypeClass::Record || kind == TypeClass::Tuple || kind == TypeClass::Pair;
  const Value element = isRecord ? recordValue(inner) : nullValue();
  const auto count = type && !type->numbers.empty() ? static_cast<std::size_t>(type->numbers[0]) : 0;
  return making.done(count > 0 && canListElements(count)
                         ? listValue(making.type, std::vector<Value>(count, element))
                         : summaryList(making.type, {element}));
}

// c10::ArrayRef: one number, or a pointer and a length.
std::optional<Outcomes> makeArrayRef(const Making &making, const Effect &) {
  const Value first = making.arg(0);
  if (!is(first, ValueKind::Scalar))
    return std::nullopt;
  return making.done(making.args.size() == 1 ? listValue(making.type, {first})
                                             : summaryList(making.type, {unknownValue()}));
}

// `count` elements, each a copy of one value.
Value copies(const Making &making) {
  const auto count = making.call.row.numberOf(making.arg(0));
  const Value fill = making.args.size() > 1 ? making.arg(1) : nullValue();
  return count && *count >= 0 && canListElements(static_cast<std::size_t>(*count))
             ? listValue(making.type, std::vector<Value>(static_cast<std::size_t>(*count), fill))
             : summaryList(making.type, {fill});
}

Value listOf(const Making &making) {
  const Machine &machine = making.call.machine;
  if (making.args.empty())
    return listValue(making.type, {});
  const Value first = making.arg(0);
  const bool isFirst = making.args.size() <= 2; // the second may be an allocator
  if (isFirst && is(first, ValueKind::List))
    return first;
  if (isTensorMemory(first))
    return summaryList(making.type, {unknownValue()});
  if (isFirst && is(first, ValueKind::Tensor) &&
      machine.types.classOf(machine.types.inner(making.type)) == TypeClass::Tensor)
    return listValue(making.type, {first});
  if (is(first, ValueKind::Address)) { // a pair of iterators, or a pointer to an element
    const Address whole = isPosition(first) ? sequenceOf(first->address) : first->address;
    if (Value list = machine.memory.read(making.call.row, whole); is(list, ValueKind::List))
      return list;
  }
  if (is(first, ValueKind::Scalar))
    return copies(making);
  if (is(first, ValueKind::Unknown))
    return unknownValue();
  std::vector<Value> values;
  for (const Argument &arg : making.args)
    values.push_back(arg.value);
  return listValue(making.type, std::move(values));
}

std::optional<Outcomes> makeList(const Making &making, const Effect &) { return making.done(listOf(making)); }

} // namespace

Words containerWords() {
  return {{{"push_back", pushBack},
           {"emplace_back", emplaceBack},
           {"resize", resize},
           {"clear", clear},
           {"list_element", listElement},
           {"front_element", frontElement},
           {"back_element", backElement},
           {"list_size", listSize},
           {"list_is_empty", listIsEmpty}},
          {},
          {{"make_array", makeArray}, {"make_array_ref", makeArrayRef}, {"make_list", makeList}}};
}

} // namespace devicetidy
