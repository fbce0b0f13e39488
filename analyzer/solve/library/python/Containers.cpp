//===- Containers.cpp - lists, tuples, dictionaries, what is iterated ---===//
#include "analyzer/solve/library/std/Containers.h"
#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/Ends.h"
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/engine/Operators.h"
#include "analyzer/solve/library/python/Lists.h"
#include "analyzer/solve/library/python/OpenValues.h"
#include "analyzer/solve/library/python/Words.h"

#include <algorithm>

namespace devicetidy {
namespace python {
namespace {

using models::Effect;

std::optional<Outcomes> listWord(Call &call, const Effect &) {
  std::vector<Value> elements, others; // those with a place, and what is behind a star
  bool isOpen = false;
  for (std::size_t i = 0; i < call.fact.operands.size(); ++i) {
    const Value value = call.operand(i);
    const bool isSpread = i < call.fact.captures.size() && call.fact.captures[i].view() == "*";
    const auto known = isSpread ? elementsOf(call, value) : std::vector<Value>{value};
    isOpen |= !known;
    const std::vector<Value> some = known ? *known : alternatives(call, value);
    std::vector<Value> &all = isOpen ? others : elements;
    all.insert(all.end(), some.begin(), some.end());
  }
  const Value list = isOpen ? listBeginning(elements, others) : tupleValue(std::move(elements));
  if (lastPart(call.fact.name.view()) == "tuple")
    return call.done(list);
  return call.done(allocated(call, call.row, "python::list", list));
}

std::optional<Outcomes> dictWord(Call &call, const Effect &) {
  std::map<Name, Value> entries;
  for (std::size_t i = 0; i + 1 < call.fact.operands.size(); i += 2) {
    const bool spreads = i + 1 < call.fact.captures.size() && call.fact.captures[i + 1].view() == "**";
    if (!spreads) {
      setEntry(entries, fieldOf(call.row, call.operand(i)), call.operand(i + 1));
      continue;
    }
    const Value from = behind(call, call.operand(i + 1));
    if (isDict(from))
      addEntries(from, entries);
    else
      setEntry(entries, anyEntryField, unknownValue());
  }
  return call.done(allocated(call, call.row, dictType, recordValue(dictType, std::move(entries))));
}

std::optional<Outcomes> sliceWord(Call &call, const Effect &) {
  std::map<Name, Value> ends;
  for (std::size_t i = 0; i < call.fact.captures.size(); ++i)
    ends[call.fact.captures[i]] = call.operand(i);
  return call.done(recordValue(sliceType, std::move(ends)));
}

// The tensors among indices; basic ones choose a part.
void addIndexTensors(const Call &call, const Value &index, const Operand &written,
                     std::vector<Argument> &args) {
  const Value held = whereAsked(call, behind(call, index));
  if (is(held, ValueKind::Tensor))
    args.push_back({held, {}, written.text, &written});
  if (is(held, ValueKind::List))
    for (const Value &each : isSummary(held) ? held->summary : held->elements)
      addIndexTensors(call, each, written, args);
}

// A list of positions is made a tensor of them; a tuple has one for each dimension.
void addIndexLists(const Call &call, const Value &index, const Operand &written,
                   std::vector<Argument> &args) {
  const Value held = behind(call, index);
  const bool isTuple = is(index, ValueKind::List);
  if ((is(held, ValueKind::List) && !isTuple) || held->type == arrayType)
    args.push_back({tensorValue(Placement::cpu(), someRank, nullptr), {}, written.text, &written});
  else if (isTuple && !isSummary(index))
    for (const Value &each : index->elements)
      addIndexLists(call, each, written, args);
}

Outcomes entryOf(Call &call, const Value &object, const Value &index, const Operand &written) {
  Machine &machine = call.machine;
  if (is(object, ValueKind::Function) && object->type == environmentType)
    return readVariable(call, call.row, {index, {}}, nullptr);
  if (is(object, ValueKind::Function) && startsWith(object->type.view(), classPrefix)) // Mode["A"]
    if (const auto member = textOf(call, index))
      return attributeOf(call, call.row, {object, {}}, *member);
  if (isOpen(object))
    return call.done(entryOfOpen(call, call.row, object, index));
  if (isSomePart(object))
    return call.done(object);
  if (isOfHost(object))
    return call.done(object);
  const Value held = behind(call, object);
  if (std::optional<Outcomes> outcomes =
          callSpecial(call, {object, {}, written.text, &written}, "__getitem__", {{index, {}}}))
    return std::move(*outcomes);
  if (is(held, ValueKind::Record) && held->type == varsType) {
    const auto attribute = textOf(call, index);
    return attribute ? attributeOf(call, call.row, {held->fields.at("object"), {}}, *attribute)
                     : call.done(unknownValue());
  }
  if (isDict(held))
    return entryOfDict(call, object, held, index, written);
  if (const auto key = is(held, ValueKind::Record) && is(index, ValueKind::Scalar) ? keyField(call.row, index)
                                                                                   : std::nullopt)
    for (const std::string &field :
         {hidden::submodule(Name(textOf(call, index).value_or(""))), key->str(), anyEntryField.str()})
      if (const auto child = held->fields.find(Name(field)); child != held->fields.end())
        return call.done(child->second);
  if (is(held, ValueKind::Record) && held->fields.count(hidden::children)) {
    if (is(index, ValueKind::Record)) // a slice
      return call.done(object);
    const Value children = held->fields.at(hidden::children);
    const Address where = object->address.field(hidden::children);
    Call inner{machine, call.frame, call.row, call.fact, call.first};
    const auto number = call.row.numberOf(index);
    const std::int64_t size =
        is(children, ValueKind::List) && !isSummary(children) ? std::int64_t(children->elements.size()) : -1;
    const Term at = number && *number < 0 && size >= 0 ? intTerm(*number + size)
                    : is(index, ValueKind::Scalar)     ? index->term
                                                       : machine.freshScalar(call);
    return elementAt(inner, where, children, at);
  }
  if (is(held, ValueKind::Record) && !held->origin) { // a pair of results
    const auto number = call.row.numberOf(index);
    const auto part = number ? held->fields.find(Name(std::to_string(*number))) : held->fields.end();
    return call.done(part == held->fields.end() ? unknownValue() : part->second);
  }
  if (!is(held, ValueKind::List))
    return call.done(unknownValue());
  if (is(index, ValueKind::Record)) {
    const Value part = partOf(call.row, held, index);
    return call.done(is(object, ValueKind::Address) ? allocated(call, call.row, "python::list", part) : part);
  }
  const auto number = call.row.numberOf(index);
  if (!isSummary(held) && number) {
    const std::int64_t size = std::int64_t(held->elements.size()),
                       at = *number < 0 ? *number + size : *number;
    return call.done(at >= 0 && at < size ? held->elements[std::size_t(at)] : unknownValue());
  }
  if (const Value known = is(index, ValueKind::Scalar) ? elementOfEnds(held, index->term) : nullptr)
    return call.done(known);
  if (is(object, ValueKind::Address) && is(index, ValueKind::Scalar))
    return elementAt(call, object->address, held, number && *number < 0 ? fromTheEnd(*number) : index->term);
  return call.done(isSummary(held) && held->summary.size() == 1
                       ? substitute(held->summary.front(), elementIndex(), machine.freshScalar(call))
                       : unknownValue());
}

// How many dimensions x[index] has less than x; nothing when that is not known.
std::optional<int> dimensionsTaken(const Call &call, const Value &index) {
  const Value held = behind(call, index);
  if (is(held, ValueKind::Record) || is(held, ValueKind::Function)) // a slice, ...
    return 0;
  if (is(held, ValueKind::Null))
    return -1;
  if (is(held, ValueKind::Scalar))
    return 1;
  if (!is(held, ValueKind::List) || isSummary(held))
    return std::nullopt;
  int taken = 0;
  for (const Value &each : held->elements) {
    const std::optional<int> one = dimensionsTaken(call, each);
    if (!one)
      return std::nullopt;
    taken += *one;
  }
  return taken;
}

int rankOfPart(const Call &call, const Value &tensor, const Value &index, const std::vector<Argument> &args) {
  const int rank = call.machine.memory.rankOf(call.row, tensor);
  const std::optional<int> taken = dimensionsTaken(call, index);
  if (args.size() == 2 && is(behind(call, index), ValueKind::Tensor)) { // one without dimensions is a number
    const int by = call.machine.memory.rankOf(call.row, args[1].value);
    return by > 0 || by == someRank || rank > 1 ? someRank : by == 0 && rank == 1 ? 0 : unknownRank;
  }
  std::vector<Argument> lists;
  addIndexLists(call, index, call.fact.operands[1], lists);
  if (args.size() > 1 || !lists.empty())
    return someRank;
  if (!taken)
    return unknownRank;
  if (rank >= 0)
    return std::max(0, rank - *taken);
  return *taken < 0 || (*taken == 0 && rank == someRank) ? someRank
         : *taken > 0 && isOpenRank(rank)                ? partRank
                                                         : unknownRank;
}

// An index without dimensions is a number, wherever it is: an element of the steps of a scheduler.
void dropNumbers(const Call &call, std::vector<Argument> &args) {
  const auto mayBeNumber = [&](const Argument &index) {
    const int rank = call.machine.memory.rankOf(call.row, index.value);
    return rank == 0 || (isOpenRank(rank) && call.machine.memory.placementOf(call.row, index.value).kind !=
                                                 PlacementKind::Symbol);
  };
  args.erase(std::remove_if(args.begin() + 1, args.end(), mayBeNumber), args.end());
}

std::optional<Outcomes> getWord(Call &call, const Effect &) {
  const Value object = whereAsked(call, call.operand(0)), index = call.operand(1);
  if (!is(object, ValueKind::Tensor))
    return entryOf(call, object, index, call.fact.operands[0]);
  std::vector<Argument> args{{object, {}, call.fact.operands[0].text, &call.fact.operands[0]}};
  addIndexTensors(call, index, call.fact.operands[1], args);
  const int rank = rankOfPart(call, object, index, args);
  dropNumbers(call, args);
  Outcomes outcomes = callTorch(call, call.row, "at::Tensor::index", args, true);
  for (Outcome &outcome : outcomes)
    if (is(outcome.result, ValueKind::Tensor) && !outcome.result->address.valid())
      outcome.result =
          tensorValue(outcome.result->placement, rank, outcome.result->history, outcome.result->count);
  return outcomes;
}

// One of them is set, whichever that is.
void forgetAttributes(Call &call, const Value &object) {
  const Value held = behind(call, object);
  if (!is(object, ValueKind::Address) || !is(held, ValueKind::Record))
    return;
  ValueData data = *held;
  for (auto &[field, value] : data.fields)
    if (!hidden::isHidden(field))
      value = unknownValue();
  call.machine.memory.write(call.row, object->address, makeValue(std::move(data)));
}

std::optional<Outcomes> putWord(Call &call, const Effect &) {
  Machine &machine = call.machine;
  const Value object = whereAsked(call, call.operand(0)), index = call.operand(1), value = call.operand(2);
  if (isOpen(object))
    setEntryOfOpen(call, call.row, object, index, value);
  if (is(object, ValueKind::Tensor)) {
    std::vector<Argument> args{{object, {}, call.fact.operands[0].text, &call.fact.operands[0]}};
    if (is(value, ValueKind::Tensor)) { // indices are moved, and what is put there is not
      addIndexTensors(call, index, call.fact.operands[1], args);
      addIndexLists(call, index, call.fact.operands[1], args);
    }
    dropNumbers(call, args);
    args.push_back({value, {}, call.fact.operands[2].text, &call.fact.operands[2]});
    return callTorch(call, call.row, "at::Tensor::index_put_", args, true);
  }
  if (is(object, ValueKind::Record) && object->type == varsType && !textOf(call, index))
    forgetAttributes(call, object->fields.at("object"));
  if (is(object, ValueKind::Record) && object->type == varsType)
    if (const auto attribute = textOf(call, index))
      return setOwnAttribute(call, call.row, {object->fields.at("object"), {}}, *attribute, {value, {}});
  if (is(object, ValueKind::Function) && object->type == environmentType)
    writeVariable(call, index, value);
  if (isSomePart(object))
    setAnyPart(call, call.row, object, index, value);
  if (!is(object, ValueKind::Address))
    return call.done(nullValue());
  const auto written = [&](std::size_t i) {
    return Argument{call.operand(i), {}, call.fact.operands[i].text, &call.fact.operands[i]};
  };
  if (std::optional<Outcomes> outcomes =
          callSpecial(call, written(0), "__setitem__", {written(1), written(2)}))
    return outcomes;
  const Value held = machine.memory.read(call.row, object->address);
  if (isDict(held)) {
    ValueData data = *held;
    setEntryUnder(call.row, data.fields, index, value);
    machine.memory.write(call.row, object->address, makeValue(std::move(data)));
    const auto owner = held->fields.find(ownerField);
    if (const auto attribute = textOf(call, index); attribute && owner != held->fields.end())
      return setOwnAttribute(call, call.row, {owner->second, {}}, *attribute, written(2));
  } else if (is(held, ValueKind::Record) && is(value, ValueKind::Tensor) &&
             machine.types.isModule(held->type)) {
    registerEntry(call, call.row, object->address, keyField(call.row, index).value_or(anyEntryField), value);
  } else if (is(held, ValueKind::List)) {
    const auto number = call.row.numberOf(index);
    if (!isSummary(held) && number && *number >= 0 && std::size_t(*number) < held->elements.size()) {
      std::vector<Value> elements = held->elements;
      elements[std::size_t(*number)] = value;
      machine.memory.write(call.row, object->address, tupleValue(std::move(elements)));
    } else {
      std::vector<Value> all = isSummary(held) ? held->summary : held->elements;
      // What is where its index says is so for any element that is written so.
      all.push_back(is(index, ValueKind::Scalar) && !number
                        ? substitute(value, call.row.resolve(index->term), elementIndex())
                        : value);
      machine.memory.write(call.row, object->address, summaryOf(all));
    }
  }
  return call.done(nullValue());
}

// What `a, *rest = value` leaves for the starred name: all but those before and behind it.
Value restOf(const Call &call, const Value &value) {
  const Value held = behind(call, value);
  const std::int64_t first = call.fact.number, behindIt = call.fact.templateNumbers.empty()
                                                              ? 0
                                                              : call.fact.templateNumbers[0] - first - 1;
  if (!is(held, ValueKind::List))
    return summaryOf(alternatives(call, value));
  std::map<Name, Value> ends = {{"lower", scalarValue(intTerm(first))}};
  if (behindIt > 0)
    ends["upper"] = scalarValue(intTerm(-behindIt));
  return partOf(call.row, held, recordValue(sliceType, std::move(ends)));
}

std::optional<Outcomes> unpackWord(Call &call, const Effect &) {
  const Value value = call.operand(0);
  const std::int64_t number = call.fact.number; // negative: from the end
  const auto of = [&](const std::vector<Value> &elements) {
    const std::int64_t size = std::int64_t(elements.size()), at = number < 0 ? number + size : number;
    return at >= 0 && at < size ? elements[std::size_t(at)] : unknownValue();
  };
  if (isOpen(value) && lastPart(call.fact.name.view()) != "rest")
    return call.done(entryOfOpen(call, call.row, value, scalarValue(intTerm(number))));
  if (isOfHost(value))
    return call.done(value);
  if (lastPart(call.fact.name.view()) == "rest")
    return call.done(allocated(call, call.row, "python::list", restOf(call, value)));
  if (std::optional<Outcomes> outcomes = callSpecial(
          call, {value, {}, call.fact.operands[0].text, &call.fact.operands[0]}, "__iter__", {})) {
    for (Outcome &each : *outcomes) {
      const Call behindIt{call.machine, call.frame, each.row, call.fact, call.first};
      const auto elements = elementsOf(behindIt, each.result);
      each.result = elements ? of(*elements) : unknownValue();
    }
    return outcomes;
  }
  if (const auto elements = elementsOf(call, value))
    return call.done(of(*elements));
  if (is(value, ValueKind::Tensor))
    return call.done(alternatives(call, value).front());
  const Value held = behind(call, value);
  if (is(held, ValueKind::List))
    return call.done(
        substitute(anyOf(held->summary), elementIndex(), number < 0 ? fromTheEnd(number) : intTerm(number)));
  if (is(held, ValueKind::Record))
    for (const Name field : {Name(std::to_string(number)), number == 0 ? Name("first") : Name("second")})
      if (const auto part = held->fields.find(field); part != held->fields.end())
        return call.done(part->second);
  return call.done(unknownValue());
}

// What __iter__ gives is a list, as generators are, or has __next__.
Value iterated(Call &call, Outcome &from) {
  Call inner{call.machine, call.frame, from.row, call.fact, call.first};
  const std::optional<Outcomes> next = callSpecial(inner, {from.result, {}}, "__next__", {});
  if (!next || next->empty())
    return iterable(call, from.row, from.result);
  from.row = next->front().row;
  return allocated(call, from.row, "python::list",
                   summaryOf({next->size() == 1 ? next->front().result : unknownValue()}));
}

std::optional<Outcomes> iterableWord(Call &call, const Effect &) {
  const Argument object{call.operand(0), {}, call.fact.operands[0].text, &call.fact.operands[0]};
  std::optional<Outcomes> outcomes = callSpecial(call, object, "__iter__", {});
  for (Outcome &each : outcomes ? *outcomes : Outcomes())
    each.result = iterated(call, each);
  if (outcomes)
    return outcomes;
  return call.done(iterable(call, call.row, call.operand(0)));
}

std::optional<Outcomes> spreadWord(Call &call, const Effect &effect) {
  const Value held = behind(call, call.operand(0));
  const bool isOfProgram = is(held, ValueKind::Record) && findMethod(call.machine, held->type, "__iter__");
  return isOfProgram ? iterableWord(call, effect) : call.done(call.operand(0));
}

} // namespace

Value batched(Call &caller, Row &row, const Value &item) {
  Call call{caller.machine, caller.frame, row, caller.fact, caller.first};
  const Value held = behind(call, item);
  if (is(held, ValueKind::Tensor)) // one dimension more
    return tensorValue(call.machine.memory.placementOf(row, held), someRank,
                       call.machine.memory.historyOf(row, held));
  if (is(held, ValueKind::Scalar) && !textOf(call, held))
    return tensorValue(Placement::cpu(), someRank,
                       call.machine.note(nullptr, StepKind::Created, call.fact.where, "DataLoader", "cpu"));
  if (is(held, ValueKind::List) && !isSummary(held)) {
    std::vector<Value> parts;
    for (const Value &each : held->elements)
      parts.push_back(batched(call, row, each));
    return listOf(call, row, std::move(parts)); // of a tuple, too
  }
  if (!isDict(held))
    return item;
  std::map<Name, Value> entries;
  for (const auto &[field, entry] : held->fields)
    entries[field] = isEntry(field) ? batched(call, row, entry) : entry;
  return allocated(call, row, dictType, recordValue(held->type, std::move(entries)));
}

Value iterable(Call &call, Row &row, const Value &value) {
  const Value held = behind(call, value);
  if (is(value, ValueKind::Address) && (is(held, ValueKind::List) || held->fields.count(hidden::children)))
    return value;
  if (const auto elements = elementsOf(call, value))
    return listOf(call, row, *elements);
  if (is(held, ValueKind::List))
    return allocated(call, row, "python::list", held);
  if (const auto text = textOf(call, value); text && text->size() <= bounds::knownElements) {
    std::vector<Value> letters;
    for (const char letter : *text)
      letters.push_back(scalarValue(textTerm(Name(std::string(1, letter)))));
    return listOf(call, row, letters);
  }
  return allocated(call, row, "python::list",
                   summaryOf(isOpen(value) ? std::vector<Value>{elementOfOpen(call, row, value)}
                                           : alternatives(call, value)));
}

} // namespace python

Words pythonContainerWords() {
  return {{{"py_list", python::listWord},
           {"py_dict", python::dictWord},
           {"py_slice", python::sliceWord},
           {"py_get", python::getWord},
           {"py_put", python::putWord},
           {"py_unpack", python::unpackWord},
           {"py_iterable", python::iterableWord},
           {"py_spread", python::spreadWord}},
          {},
          {}};
}

} // namespace devicetidy
