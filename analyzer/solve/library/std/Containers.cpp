//===- Containers.cpp - lists, maps, pairs, tuples, optionals, range-for ---===//
#include "analyzer/solve/library/std/Containers.h"
#include "analyzer/solve/domain/Ends.h"
#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/library/std/Iterators.h"
#include "analyzer/solve/library/std/Variants.h"
#include "analyzer/solve/library/torch/HostAccess.h"

#include <algorithm>
#include <cstdlib>

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
    // In a loop run for any round, which entry it is differs from round to round: a device list gives "its
    // i-th entry".
    const bool anyRound = applies(index, "loop");
    const bool devices = std::all_of(list->elements.begin(), list->elements.end(), [](const Value &element) {
      return is(element, ValueKind::Device) && element->placement.kind == PlacementKind::Cuda;
    });
    const bool numbers = std::all_of(list->elements.begin(), list->elements.end(),
                                     [](const Value &element) { return is(element, ValueKind::Scalar); });
    if (!alike && anyRound && (devices || numbers)) {
      const Term entry = applyTerm(
          "entry", {intTerm(where.root), intTerm(static_cast<std::int64_t>(list->hash >> 1)), index});
      Value value = devices ? deviceValue(Placement::cuda(entry)) : scalarValue(entry);
      if (!call.fact.resultIsAddress)
        return call.done(value);
      Address copy = call.machine.allocate(call.row, call.frame, call.fact, call.resultType());
      call.machine.memory.write(call.row, copy, value);
      return call.done(addressValue(copy));
    }
    // A loop that is run for any iteration writes to all of them, not to the one that this row takes.
    const bool writesAny = anyRound && call.fact.resultIsAddress && isWrittenTo(call);
    if (!alike && !writesAny && list->elements.size() <= bounds::forksPerRead) {
      Outcomes outcomes;
      for (std::size_t i = 0; i < list->elements.size(); ++i) {
        Row row = call.row;
        const Term number = intTerm(static_cast<std::int64_t>(i));
        if (row.assume(applyTerm("==", {index, number}), 1))
          outcomes.push_back({row, result(row, where.element(number))});
      }
      return outcomes;
    }
  }
  if (isSummary(list) && list->summary.size() > 1 && !isOfThisRound(list, index) &&
      !elementOfEnds(list, index)) {
    // Which alternative an index has is decided once per row.
    Outcomes outcomes;
    const Term choice = applyTerm("alternative", {intTerm(where.root), index});
    for (std::size_t i = 0; i < list->summary.size(); ++i) {
      if (!isWithin(i + 1, bounds::forksPerRead, Bound::AlternativesOfElement))
        break;
      Row row = call.row;
      if (!row.assume(applyTerm("==", {choice, intTerm(static_cast<std::int64_t>(i))}), 1))
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
  return applyTerm("size", {intTerm(where.root),
                            intTerm(static_cast<std::int64_t>(where.path ? where.path->hash >> 1 : 0)),
                            intTerm(static_cast<std::int64_t>(knownAtBegin(list) + knownAtEnd(list)))});
}

Value appended(Call &call, const Value &list, Name type, Value element) {
  if (is(list, ValueKind::Null)) // made by its default constructor
    return appended(call, listValue(type, {}), type, std::move(element));
  if (Term round = call.machine.roundOf(call.frame, call.row)) {
    if (!is(list, ValueKind::List)) // which of its elements the new ones are is not known
      return summaryList(type, {unknownValue()});
    std::vector<Value> before;
    for (const auto *known : {&list->elements, &list->summary})
      before.insert(before.end(), known->begin(), known->end());
    ValueData old;
    old.kind = ValueKind::List;
    old.type = type;
    old.summary = std::move(before);
    return withElementOfRound(makeValue(std::move(old)), generalise(element), round);
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

// What emplace_back returns: the element it has put at the end of `list`, which is at `where`.
Value lastElement(const Call &call, const Address &where, const Value &list) {
  if (!call.fact.resultIsAddress || !is(list, ValueKind::List))
    return unknownValue();
  if (!isSummary(list))
    return addressValue(where.element(intTerm(static_cast<std::int64_t>(list->elements.size()) - 1)));
  const Term round = call.machine.roundOf(call.frame, call.row);
  return round && list->term == round ? addressValue(where.element(round)) : unknownValue();
}

// push_back and its kin; emplace_back constructs in place.
Outcomes append(Call &call, std::string_view method) {
  Machine &machine = call.machine;
  const Address where = call.objectAddress();
  Value list = call.object();
  const Name type = call.fact.operands[0].type, inner = machine.types.inner(type);
  Value element;
  const bool emplaces = isOneOf(method, {"emplace_back", "emplace"});
  const TypeClass kind = machine.types.classOf(inner);
  const bool builds =
      emplaces && (kind == TypeClass::Record || kind == TypeClass::Holder || kind == TypeClass::Device ||
                   kind == TypeClass::Pair || kind == TypeClass::Tuple || kind == TypeClass::Example);
  const bool sameType = call.argCount() == 1 && call.fact.operands[call.first].type == inner;
  if (builds && !sameType) {
    Address made = machine.allocate(call.row, call.frame, call.fact, inner);
    std::vector<Row> rows =
        machine.construct(call.frame, call.fact, call.row, inner, made, call.forwardedFrom(0));
    Outcomes outcomes;
    for (Row &row : rows) {
      Value value = machine.memory.read(row, made);
      Call inRow{machine, call.frame, row, call.fact, call.first};
      const Value next = appended(inRow, machine.memory.read(row, where), type, value);
      machine.memory.write(row, where, next);
      Value result = method == "emplace_back" ? lastElement(inRow, where, next) : unknownValue();
      outcomes.push_back({std::move(row), std::move(result)});
    }
    return outcomes;
  }
  element = call.argCount() ? call.arg(call.argCount() - 1) : unknownValue();
  const Value next = appended(call, list, type, element);
  machine.memory.write(call.row, where, next);
  return call.done(method == "emplace_back" ? lastElement(call, where, next) : unknownValue());
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

Outcomes resize(Call &call) {
  const Value fill = call.argCount() > 1 ? call.arg(1) : nullValue();
  call.machine.memory.write(
      call.row, call.objectAddress(),
      resized(call.object(), call.fact.operands[0].type, call.row.numberOf(call.arg(0)), fill));
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

std::optional<Outcomes> modelList(Call &call, std::string_view method) {
  Machine &machine = call.machine;
  const Address where = call.objectAddress();
  Value list = call.object();
  if (isOneOf(method, {"push_back", "emplace_back", "push", "emplace", "add"}))
    return append(call, method);
  if (isOneOf(method, {"operator[]", "at", "get"}) && call.argCount() == 1) {
    Value index = call.arg(0);
    const auto number = call.row.numberOf(index);
    if (method == "at" && number && is(list, ValueKind::List) && !isSummary(list) &&
        *number >= static_cast<std::int64_t>(list->elements.size()))
      return Outcomes(); // throws std::out_of_range
    return is(index, ValueKind::Scalar) ? elementAt(call, where, list, index->term)
                                        : call.done(unknownValue());
  }
  if (method == "front")
    return elementAt(call, where, list, intTerm(0));
  if (method == "back") {
    const Term size = sizeTerm(list, where);
    const Term round = call.machine.roundOf(call.frame, call.row);
    if (round && is(list, ValueKind::List) && list->term == round)
      return elementAt(call, where, list, round);
    const Term last = constantOf(size) ? applyTerm("-", {size, intTerm(1)}) : applyTerm("back", {size});
    return elementAt(call, where, list, last);
  }
  if (isOneOf(method, {"size", "length"}))
    return call.done(scalarValue(call.row.resolve(sizeTerm(list, where))));
  if (method == "empty" && holdsSomething(list)) // filled by a loop or a module: loops are meant to run
    return call.done(scalarValue(intTerm(0)));
  if (method == "empty") {
    const Term size = sizeTerm(list, where);
    return call.done(scalarValue(call.row.resolve(applyTerm("==", {size, intTerm(0)}))));
  }
  if (method == "resize")
    return resize(call);
  if (method == "clear") {
    machine.memory.write(call.row, where, listValue(call.fact.operands[0].type, {}));
    return call.done(unknownValue());
  }
  if (method == "operator=") {
    Value value = call.arg(0);
    machine.memory.write(call.row, where, value);
    return call.done(call.fact.resultIsAddress ? addressValue(where) : value);
  }
  if (isOneOf(method, {"vec", "toVector", "slice"}))
    return call.done(list);
  return std::nullopt;
}

} // namespace

std::optional<Outcomes> modelContainers(Call &call) {
  std::string_view name = call.fact.name.view();
  if (startsWith(name, "torch::OrderedDict::Item::") && call.fact.hasObject) {
    const Address value = call.objectAddress().field(lastPart(name) == "key" ? "first" : "second");
    return call.done(call.fact.resultIsAddress ? addressValue(value)
                                               : call.machine.memory.read(call.row, value));
  }
  if (!call.fact.hasObject) {
    if (std::optional<Outcomes> outcomes = modelVariant(call))
      return outcomes;
    return modelTupleFunction(call, name);
  }
  if (call.fact.operands.empty())
    return std::nullopt;
  const std::string_view method = lastPart(name);
  switch (call.machine.types.classOf(call.fact.operands[0].type)) {
  case TypeClass::List:
    return modelList(call, method);
  case TypeClass::Map:
    return modelDict(call, method);
  case TypeClass::Optional:
  case TypeClass::Wrapper:
    return modelOptional(call, method);
  case TypeClass::Tuple:
  case TypeClass::Pair:
    return modelTuple(call, method);
  case TypeClass::Variant:
    return modelVariantMethod(call, method);
  default:
    break;
  }
  if (startsWith(name, "torch::ExpandingArray"))
    return call.done(unknownValue());
  return std::nullopt;
}

namespace {

// std::array<T, N> before anything is put in.
Value emptyArray(const Types &types, Name type) {
  const std::string_view name = type.view();
  const Name inner = types.inner(type);
  const TypeClass kind = types.classOf(inner);
  const bool isRecord = kind == TypeClass::Record || kind == TypeClass::Tuple || kind == TypeClass::Pair;
  const Value element = isRecord ? recordValue(inner) : nullValue();
  const std::size_t count = std::strtoul(name.data() + name.rfind(' ') + 1, nullptr, 10);
  return count > 0 && canListElements(count) ? listValue(type, std::vector<Value>(count, element))
                                             : summaryList(type, {element});
}

// The part of a tuple that has one; what several make is not known.
Value onlyPart(const Call &call, const Value &tuple) {
  if (!is(tuple, ValueKind::Record) || tuple->fields.size() != 1)
    return unknownValue();
  const Value part = tuple->fields.begin()->second;
  return is(part, ValueKind::Address) ? call.machine.memory.read(call.row, part->address) : part;
}

} // namespace

std::optional<Value> constructContainer(Call &call, Name type, const std::vector<Value> &args) {
  const Types &types = call.machine.types;
  switch (types.classOf(type)) {
  case TypeClass::List: {
    if (args.empty())
      return startsWith(type.view(), "std::array<") ? emptyArray(types, type) : listValue(type, {});
    if (args.size() <= 2 && is(args[0], ValueKind::List))
      return args[0];
    if (isTensorMemory(args[0]))
      return summaryList(type, {unknownValue()});
    if (args.size() <= 2 && is(args[0], ValueKind::Tensor) && types.inner(type) == Name("at::Tensor"))
      return listValue(type, {args[0]});
    if (is(args[0], ValueKind::Address)) { // a pair of iterators, or a pointer to an element
      Address whole = args[0]->address;
      if (whole.path && whole.path->index)
        whole.path = whole.path->parent;
      if (Value list = call.machine.memory.read(call.row, whole); is(list, ValueKind::List))
        return list;
    }
    if (is(args[0], ValueKind::Scalar)) {
      auto count = call.row.numberOf(args[0]);
      const std::string &name = type.str();
      if (name.find("ArrayRef") != std::string::npos) // one number, or a pointer and a length
        return args.size() == 1 ? listValue(type, {args[0]}) : summaryList(type, {unknownValue()});
      Value fill = args.size() > 1 ? args[1] : nullValue();
      if (count && *count >= 0 && canListElements(static_cast<std::size_t>(*count)))
        return listValue(type, std::vector<Value>(static_cast<std::size_t>(*count), fill));
      return summaryList(type, {fill});
    }
    return is(args[0], ValueKind::Unknown) ? unknownValue() : listValue(type, args);
  }
  case TypeClass::Map:
    if (args.empty() || is(args[0], ValueKind::Scalar)) // a number of buckets, a description of the keys
      return recordValue(type);
    if (is(args[0], ValueKind::List) && !isSummary(args[0])) {
      std::map<Name, Value> fields;
      for (const Value &entry : args[0]->elements)
        if (is(entry, ValueKind::Record) && entry->fields.count("first") && entry->fields.count("second")) {
          const Name field = keyField(call.row, entry->fields.at("first")).value_or(anyKey());
          fields[field] = mapEntry(field, entry->fields.at("second"));
        }
      return recordValue(type, std::move(fields));
    }
    return args[0];
  case TypeClass::Pair:
  case TypeClass::Tuple:
  case TypeClass::Example: {
    if (args.size() == 1 && is(args[0], ValueKind::Record))
      return args[0];
    std::map<Name, Value> fields;
    const TypeClass kind = types.classOf(type);
    if (args.size() == 3 && kind == TypeClass::Pair) // std::piecewise_construct
      return recordValue(type, {{"first", onlyPart(call, args[1])}, {"second", onlyPart(call, args[2])}});
    for (std::size_t i = 0; i < args.size(); ++i) {
      Name field = kind == TypeClass::Tuple  ? Name(std::to_string(i))
                   : kind == TypeClass::Pair ? Name(i == 0 ? "first" : "second")
                                             : Name(i == 0 ? "data" : "target");
      fields[field] = args[i];
    }
    return recordValue(type, std::move(fields));
  }
  case TypeClass::Optional:
  case TypeClass::Wrapper:
  case TypeClass::Scalar:
    if (args.empty())
      return nullValue();
    if (args.size() > 1)
      return listValue(type, args);
    return args[0];
  case TypeClass::Tensor:
    return args.empty() ? nullValue() : args[0];
  case TypeClass::Variant:
    return constructVariant(call.machine, type, args);
  case TypeClass::String:
    return args.empty()                     ? scalarValue(textTerm(""))
           : is(args[0], ValueKind::Scalar) ? args[0]
                                            : unknownValue();
  case TypeClass::Function:
    return args.empty() ? nullValue() : args[0];
  case TypeClass::Record:
    if (type.view() == "at::indexing::Slice")
      return recordValue(type);
    return std::nullopt;
  default:
    return std::nullopt;
  }
}

} // namespace devicetidy
