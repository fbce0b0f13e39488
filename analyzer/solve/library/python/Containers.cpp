//===- Containers.cpp - lists, tuples, dictionaries, what is iterated ---===//
#include "analyzer/solve/library/std/Containers.h"
#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/python/Python.h"
#include "analyzer/solve/library/python/Words.h"

#include <algorithm>

namespace devicetidy {
namespace python {
namespace {

using models::Effect;

const Name listType("std::vector<at::Tensor>");
const Name anyEntryField("[?]");        ///< what a dictionary holds under keys that are not known
constexpr std::int64_t mostCounted = 8; ///< numbers of a range that are told apart

Value tupleValue(std::vector<Value> elements) { return listValue(listType, std::move(elements)); }

bool isDict(const Value &held) { return is(held, ValueKind::Record) && held->type == dictType; }

Name fieldOf(const Row &row, const Value &key) { return keyField(row, key).value_or(anyEntryField); }

// Is a device among what the key is made of? Then what is found under it is where that device says.
bool hasDevice(const Value &key) {
  return is(key, ValueKind::Device) ||
         (is(key, ValueKind::List) && std::any_of(key->elements.begin(), key->elements.end(), hasDevice));
}

Value keyOf(Name field) {
  const std::string_view text = field.view();
  if (field == anyEntryField || text.size() < 2)
    return unknownValue();
  return startsWith(text, "[#") ? scalarValue(intTerm(std::atoll(std::string(text.substr(2)).c_str())))
                                : scalarValue(textTerm(Name(text.substr(1, text.size() - 2))));
}

// The elements that a loop or a list() sees; nothing when their number is not known.
std::optional<std::vector<Value>> elementsOf(const Call &call, const Value &value) {
  const Value held = behind(call, value);
  if (is(held, ValueKind::List) && !isSummary(held))
    return held->elements;
  if (is(held, ValueKind::Record) && held->fields.count(hidden::children)) {
    const Value children = held->fields.at(hidden::children);
    if (is(children, ValueKind::List) && !isSummary(children))
      return children->elements;
  }
  if (!isDict(held) || held->fields.count(anyEntryField))
    return std::nullopt;
  std::vector<Value> keys;
  for (const auto &[field, entry] : held->fields)
    keys.push_back(keyOf(field));
  return keys;
}

// What any element may be.
std::vector<Value> alternatives(const Call &call, const Value &value) {
  const Value held = behind(call, value);
  if (is(held, ValueKind::List))
    return isSummary(held) ? held->summary : held->elements;
  if (is(held, ValueKind::Tensor))
    return {tensorValue(call.machine.memory.placementOf(call.row, held), unknownRank,
                        call.machine.memory.historyOf(call.row, held))};
  return {unknownValue()};
}

Value summaryOf(std::vector<Value> all) {
  return summaryList(listType, all.empty() ? std::vector<Value>{unknownValue()} : all);
}

std::optional<Outcomes> listWord(Call &call, const Effect &) {
  const Given given = givenTo(call, 0);
  std::vector<Value> elements;
  for (const Argument &each : given.positional)
    elements.push_back(each.value);
  const Value list = given.isOpen ? summaryOf(std::move(elements)) : tupleValue(std::move(elements));
  if (lastPart(call.fact.name.view()) == "tuple")
    return call.done(list);
  return call.done(allocated(call, call.row, "python::list", list));
}

std::optional<Outcomes> dictWord(Call &call, const Effect &) {
  std::map<Name, Value> entries;
  for (std::size_t i = 0; i + 1 < call.fact.operands.size(); i += 2) {
    const bool spreads = i + 1 < call.fact.captures.size() && call.fact.captures[i + 1].view() == "**";
    if (!spreads) {
      entries[fieldOf(call.row, call.operand(i))] = call.operand(i + 1);
      continue;
    }
    const Value from = behind(call, call.operand(i + 1));
    if (isDict(from))
      for (const auto &[field, entry] : from->fields)
        entries[field] = entry;
    else
      entries[anyEntryField] = unknownValue();
  }
  return call.done(allocated(call, call.row, dictType, recordValue(dictType, std::move(entries))));
}

std::optional<Outcomes> sliceWord(Call &call, const Effect &) { return call.done(recordValue(sliceType)); }

// The tensors among indices; basic ones choose a part.
void addIndexTensors(const Call &call, const Value &index, const Operand &written,
                     std::vector<Argument> &args) {
  const Value held = behind(call, index);
  if (is(held, ValueKind::Tensor))
    args.push_back({held, {}, written.text, &written});
  if (is(held, ValueKind::List))
    for (const Value &each : isSummary(held) ? held->summary : held->elements)
      addIndexTensors(call, each, written, args);
}

Outcomes entryOf(Call &call, const Value &object, const Value &index) {
  Machine &machine = call.machine;
  const Value held = behind(call, object);
  if (isDict(held) && hasDevice(index))
    return call.done(unknownValue());
  if (isDict(held)) {
    const auto found = held->fields.find(fieldOf(call.row, index));
    if (found != held->fields.end())
      return call.done(found->second);
    const auto any = held->fields.find(anyEntryField);
    return call.done(any == held->fields.end() ? unknownValue() : any->second);
  }
  if (const auto key = textOf(call, index); key && is(held, ValueKind::Record))
    for (const std::string &field : {hidden::submodule(Name(*key)), "[" + *key + "]"})
      if (const auto child = held->fields.find(Name(field)); child != held->fields.end())
        return call.done(child->second);
  if (is(held, ValueKind::Record) && held->fields.count(hidden::children)) {
    if (!is(index, ValueKind::Scalar))
      return call.done(object);
    const Value children = held->fields.at(hidden::children);
    const Address where = object->address.field(hidden::children);
    Call inner{machine, call.frame, call.row, call.fact, call.first};
    const auto number = call.row.numberOf(index);
    const std::int64_t size =
        is(children, ValueKind::List) && !isSummary(children) ? std::int64_t(children->elements.size()) : -1;
    const Term at = number && *number < 0 && size >= 0 ? intTerm(*number + size) : index->term;
    return elementAt(inner, where, children, at);
  }
  if (is(held, ValueKind::Record) && !held->origin) { // a pair of results
    const auto number = call.row.numberOf(index);
    const auto part = number ? held->fields.find(Name(std::to_string(*number))) : held->fields.end();
    return call.done(part == held->fields.end() ? unknownValue() : part->second);
  }
  if (!is(held, ValueKind::List))
    return call.done(unknownValue());
  if (is(index, ValueKind::Record)) // a slice
    return call.done(
        is(object, ValueKind::Address)
            ? allocated(call, call.row, "python::list", isSummary(held) ? held : summaryOf(held->elements))
            : summaryOf(held->elements));
  const auto number = call.row.numberOf(index);
  if (!isSummary(held) && number) {
    const std::int64_t size = std::int64_t(held->elements.size()),
                       at = *number < 0 ? *number + size : *number;
    return call.done(at >= 0 && at < size ? held->elements[std::size_t(at)] : unknownValue());
  }
  if (is(object, ValueKind::Address) && is(index, ValueKind::Scalar))
    return elementAt(call, object->address, held, index->term);
  return call.done(unknownValue());
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

int rankOfPart(const Call &call, const Value &tensor, const Value &index, bool hasTensors) {
  const int rank = call.machine.memory.rankOf(call.row, tensor);
  const std::optional<int> taken = dimensionsTaken(call, index);
  if (hasTensors)
    return someRank;
  if (!taken)
    return unknownRank;
  if (rank >= 0)
    return std::max(0, rank - *taken);
  return *taken < 0 || (*taken == 0 && rank == someRank) ? someRank : unknownRank;
}

std::optional<Outcomes> getWord(Call &call, const Effect &) {
  const Value object = call.operand(0), index = call.operand(1);
  if (!is(object, ValueKind::Tensor))
    return entryOf(call, object, index);
  std::vector<Argument> args{{object, {}, call.fact.operands[0].text, &call.fact.operands[0]}};
  addIndexTensors(call, index, call.fact.operands[1], args);
  const int rank = rankOfPart(call, object, index, args.size() > 1);
  Outcomes outcomes = callTorch(call, call.row, "at::Tensor::index", args, true);
  for (Outcome &outcome : outcomes)
    if (is(outcome.result, ValueKind::Tensor) && !outcome.result->address.valid())
      outcome.result = tensorValue(outcome.result->placement, rank, outcome.result->history);
  return outcomes;
}

std::optional<Outcomes> putWord(Call &call, const Effect &) {
  Machine &machine = call.machine;
  const Value object = call.operand(0), index = call.operand(1), value = call.operand(2);
  if (is(object, ValueKind::Tensor)) {
    std::vector<Argument> args{{object, {}, call.fact.operands[0].text, &call.fact.operands[0]}};
    addIndexTensors(call, index, call.fact.operands[1], args);
    args.push_back({value, {}, call.fact.operands[2].text, &call.fact.operands[2]});
    return callTorch(call, call.row, "at::Tensor::index_put_", args, true);
  }
  if (!is(object, ValueKind::Address))
    return call.done(nullValue());
  const Value held = machine.memory.read(call.row, object->address);
  if (isDict(held))
    machine.memory.write(call.row, object->address, withField(held, fieldOf(call.row, index), value));
  else if (is(held, ValueKind::List)) {
    const auto number = call.row.numberOf(index);
    if (!isSummary(held) && number && *number >= 0 && std::size_t(*number) < held->elements.size()) {
      std::vector<Value> elements = held->elements;
      elements[std::size_t(*number)] = value;
      machine.memory.write(call.row, object->address, tupleValue(std::move(elements)));
    } else {
      std::vector<Value> all = isSummary(held) ? held->summary : held->elements;
      all.push_back(value);
      machine.memory.write(call.row, object->address, summaryOf(std::move(all)));
    }
  }
  return call.done(nullValue());
}

std::optional<Outcomes> unpackWord(Call &call, const Effect &) {
  const Value value = call.operand(0);
  const auto number = static_cast<std::size_t>(call.fact.number);
  if (lastPart(call.fact.name.view()) == "rest")
    return call.done(allocated(call, call.row, "python::list", summaryOf(alternatives(call, value))));
  if (const auto elements = elementsOf(call, value))
    return call.done(number < elements->size() ? (*elements)[number] : unknownValue());
  if (is(value, ValueKind::Tensor))
    return call.done(alternatives(call, value).front());
  const Value held = behind(call, value);
  if (is(held, ValueKind::List))
    return call.done(anyOf(held->summary));
  if (is(held, ValueKind::Record))
    for (const Name field : {Name(std::to_string(number)), number == 0 ? Name("first") : Name("second")})
      if (const auto part = held->fields.find(field); part != held->fields.end())
        return call.done(part->second);
  return call.done(unknownValue());
}

std::optional<Outcomes> iterableWord(Call &call, const Effect &) {
  return call.done(iterable(call, call.row, call.operand(0)));
}

std::optional<Outcomes> enterWord(Call &call, const Effect &) {
  const Value manager = call.operand(0);
  return call.done(is(manager, ValueKind::Address) ? manager : unknownValue());
}

std::optional<Outcomes> exitWord(Call &call, const Effect &) { return call.done(nullValue()); }

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
    return tupleValue(std::move(parts));
  }
  if (!isDict(held))
    return item;
  std::map<Name, Value> entries;
  for (const auto &[field, entry] : held->fields)
    entries[field] = batched(call, row, entry);
  return allocated(call, row, dictType, recordValue(dictType, std::move(entries)));
}

Value iterable(Call &call, Row &row, const Value &value) {
  const Value held = behind(call, value);
  if (is(value, ValueKind::Address) && (is(held, ValueKind::List) || held->fields.count(hidden::children)))
    return value;
  if (is(held, ValueKind::Record) && held->type == loaderType)
    return allocated(call, row, "python::list", summaryOf({held->fields.at("batch")}));
  if (const auto elements = elementsOf(call, value))
    return listOf(call, row, *elements);
  if (is(held, ValueKind::List))
    return allocated(call, row, "python::list", held);
  if (is(held, ValueKind::Tensor))
    return allocated(call, row, "python::list", summaryOf(alternatives(call, value)));
  return allocated(call, row, "python::list", summaryOf({unknownValue()}));
}

namespace {

Outcomes result(const Row &row, Value value) { return done(row, std::move(value)); }

std::optional<Outcomes> listMethod(Call &call, Row &row, const Argument &object, const Value &list,
                                   const std::string &name, const Given &given) {
  Memory &memory = call.machine.memory;
  const Address where = object.value->address;
  const Value first = given.positional.empty() ? unknownValue() : given.positional[0].value;
  Call inner{call.machine, call.frame, row, call.fact, call.first};
  if (name == "append" || name == "add")
    memory.write(row, where, appended(inner, list, listType, first));
  else if (name == "insert" && given.positional.size() > 1)
    memory.write(row, where, inAnyOrder(appended(inner, list, listType, given.positional[1].value)));
  else if (name == "extend" || name == "update") {
    Value now = list;
    for (const Value &each : elementsOf(call, first) ? *elementsOf(call, first) : alternatives(call, first))
      now = appended(inner, now, listType, each);
    memory.write(row, where,
                 elementsOf(call, first) ? now : summaryOf(isSummary(now) ? now->summary : now->elements));
  } else if (name == "clear")
    memory.write(row, where, tupleValue({}));
  else if (name == "copy")
    return result(row, allocated(call, row, "python::list", list));
  else if (name == "pop") {
    if (isSummary(list) || list->elements.empty())
      return result(row, isSummary(list) ? anyOf(list->summary) : unknownValue());
    std::vector<Value> rest = list->elements;
    const bool isFirst = row.numberOf(first) == 0;
    const Value taken = isFirst ? rest.front() : rest.back();
    rest.erase(isFirst ? rest.begin() : rest.end() - 1);
    memory.write(row, where, tupleValue(std::move(rest)));
    return result(row, taken);
  } else if (isOneOf(name, {"sort", "reverse"}))
    memory.write(row, where, inAnyOrder(list));
  else
    return std::nullopt;
  return result(row, nullValue());
}

std::optional<Outcomes> dictMethod(Call &call, Row &row, const Argument &object, const Value &dict,
                                   const std::string &name, const Given &given) {
  const Address where = object.value->address;
  const Value key = given.positional.empty() ? unknownValue() : given.positional[0].value;
  const bool isWhole = !dict->fields.count(anyEntryField);
  if (isOneOf(name, {"keys", "values", "items"})) {
    std::vector<Value> all;
    for (const auto &[field, entry] : dict->fields)
      all.push_back(name == "keys"     ? keyOf(field)
                    : name == "values" ? entry
                                       : tupleValue({keyOf(field), entry}));
    return result(row, allocated(call, row, "python::list", isWhole ? tupleValue(all) : summaryOf(all)));
  }
  const auto found = dict->fields.find(fieldOf(row, key));
  const Value otherwise = given.positional.size() > 1 ? given.positional[1].value : nullValue();
  if (isOneOf(name, {"get", "pop", "setdefault"})) {
    const Value entry = found != dict->fields.end() ? found->second : isWhole ? otherwise : unknownValue();
    if (name == "setdefault")
      call.machine.memory.write(row, where, withField(dict, fieldOf(row, key), entry));
    return result(row, entry);
  }
  if (name == "update") {
    Value now = dict;
    const Value from = behind(call, key);
    if (isDict(from))
      for (const auto &[field, entry] : from->fields)
        now = withField(now, field, entry);
    else if (!given.positional.empty())
      now = withField(now, anyEntryField, unknownValue());
    for (const auto &[keyword, argument] : given.named)
      now = withField(now, Name("[" + keyword.str() + "]"), argument.value);
    call.machine.memory.write(row, where, now);
    return result(row, nullValue());
  }
  if (name == "copy")
    return result(row, allocated(call, row, dictType, dict));
  return std::nullopt;
}

Value rangeOf(const Row &row, const Given &given) {
  const auto bound = [&](std::size_t i) { return row.numberOf(given.positional[i].value); };
  if (given.positional.empty())
    return unknownValue();
  const bool hasStart = given.positional.size() > 1;
  const auto start = hasStart ? bound(0) : std::optional<std::int64_t>(0), end = bound(hasStart ? 1 : 0);
  if (start && end && *end - *start <= mostCounted && given.positional.size() < 3) {
    std::vector<Value> numbers;
    for (std::int64_t i = *start; i < *end; ++i)
      numbers.push_back(scalarValue(intTerm(i)));
    return tupleValue(std::move(numbers));
  }
  return summaryOf({unknownValue()});
}

// zip and enumerate: tuples of what is in each.
Value tuplesOf(Call &call, const std::vector<Value> &lists) {
  std::vector<std::vector<Value>> columns;
  std::size_t count = ~std::size_t(0);
  bool isKnown = true;
  for (const Value &list : lists) {
    const auto elements = elementsOf(call, list);
    isKnown &= elements.has_value();
    columns.push_back(elements ? *elements : alternatives(call, list));
    count = std::min(count, columns.back().size());
  }
  std::vector<Value> tuples;
  for (std::size_t i = 0; isKnown && i < count && !lists.empty(); ++i) {
    std::vector<Value> tuple;
    for (const auto &column : columns)
      tuple.push_back(column[i]);
    tuples.push_back(tupleValue(std::move(tuple)));
  }
  if (isKnown)
    return tupleValue(std::move(tuples));
  std::vector<Value> any;
  for (const auto &column : columns)
    any.push_back(column.empty() ? unknownValue() : anyOf(column));
  return summaryOf({tupleValue(std::move(any))});
}

Value isInstance(const Call &call, const Value &value, const Value &type) {
  if (!is(type, ValueKind::Function) || is(value, ValueKind::Unknown))
    return unknownValue();
  const std::string_view name = type->type.view();
  if (const Value object = behind(call, value);
      is(value, ValueKind::Address) && is(object, ValueKind::Record)) {
    const std::string known = startsWith(name, classPrefix) ? std::string(name.substr(classPrefix.size()))
                              : name == "torch.nn.Module"   ? "torch::nn::Module"
                              : startsWith(name, "torch.nn.")
                                  ? "torch::nn::" + std::string(name.substr(9)) + "Impl"
                                  : std::string();
    if (!known.empty())
      return scalarValue(intTerm(call.machine.types.derivesFrom(object->type, known)));
  }
  if (name == "torch.Tensor")
    return scalarValue(intTerm(is(value, ValueKind::Tensor)));
  const Value held = behind(call, value);
  if (name == "builtins.dict")
    return scalarValue(intTerm(isDict(held)));
  if (name == "builtins.list")
    return scalarValue(intTerm(is(value, ValueKind::Address) && is(held, ValueKind::List)));
  if (name == "builtins.tuple")
    return scalarValue(intTerm(is(value, ValueKind::List)));
  return unknownValue();
}

// parser.add_argument("--name", ..) and what the user gives then.
std::optional<Outcomes> parserMethod(Call &call, Row &row, const Argument &object, const Value &parser,
                                     const std::string &name, const Given &given) {
  if (name == "add_argument") {
    std::string option;
    for (const Argument &each : given.positional)
      if (const auto text = textOf(call, each.value); text && text->size() > option.size())
        option = *text;
    option.erase(0, option.find_first_not_of('-') == std::string::npos ? 0 : option.find_first_not_of('-'));
    if (const Argument *as = given.find("dest"))
      option = textOf(call, as->value).value_or(option);
    std::replace(option.begin(), option.end(), '-', '_');
    call.machine.memory.write(row, object.value->address,
                              withField(parser, Name(option), optionOf(call, option)));
    return result(row, unknownValue());
  }
  if (name == "parse_args")
    return result(
        row, allocated(call, row, "python::namespace", recordValue("python::namespace", parser->fields)));
  if (name == "parse_known_args")
    return result(row, tupleValue({allocated(call, row, "python::namespace",
                                             recordValue("python::namespace", parser->fields)),
                                   unknownValue()}));
  return std::nullopt;
}

// dict(pairs): a pair is a tuple, or what named_parameters() and its kin give.
void addPair(const Row &row, const Value &pair, std::map<Name, Value> &entries) {
  const bool isTuple = is(pair, ValueKind::List) && pair->elements.size() == 2;
  const auto first = pair->fields.find("first"), second = pair->fields.find("second");
  if (isTuple)
    entries[fieldOf(row, pair->elements[0])] = pair->elements[1];
  else if (first != pair->fields.end() && second != pair->fields.end())
    entries[fieldOf(row, first->second)] = second->second;
  else
    entries[anyEntryField] = unknownValue();
}

std::optional<Outcomes> builtin(Call &call, Row &row, const std::string &name, const Given &given) {
  const Value first = given.positional.empty() ? unknownValue() : given.positional[0].value;
  if (name == "len") {
    const auto elements = elementsOf(call, first);
    return result(row, elements ? scalarValue(intTerm(std::int64_t(elements->size()))) : unknownValue());
  }
  if (name == "range")
    return result(row, rangeOf(row, given));
  if (name == "enumerate" || name == "zip") {
    std::vector<Value> lists;
    if (name == "enumerate") {
      std::vector<Value> numbers;
      if (const auto elements = elementsOf(call, first))
        for (std::size_t i = 0; i < elements->size(); ++i)
          numbers.push_back(scalarValue(intTerm(std::int64_t(i))));
      lists.push_back(elementsOf(call, first) ? tupleValue(numbers) : summaryOf({unknownValue()}));
    }
    for (const Argument &each : given.positional)
      lists.push_back(each.value);
    return result(row, tuplesOf(call, name == "enumerate" ? std::vector<Value>{lists[0], first} : lists));
  }
  if (isOneOf(name, {"list", "sorted", "reversed", "set", "tuple", "iter"})) {
    if (given.positional.empty())
      return result(row, listOf(call, row, {}));
    const auto elements = elementsOf(call, first);
    const Value list = elements ? tupleValue(*elements) : summaryOf(alternatives(call, first));
    const Value ordered = isOneOf(name, {"sorted", "reversed", "set"}) ? inAnyOrder(list) : list;
    return result(row, name == "tuple" ? ordered : allocated(call, row, "python::list", ordered));
  }
  if (name == "dict") {
    std::map<Name, Value> entries;
    for (const auto &[keyword, argument] : given.named)
      entries["[" + keyword.str() + "]"] = argument.value;
    if (!given.positional.empty() && isDict(behind(call, first)))
      for (const auto &[field, entry] : behind(call, first)->fields)
        entries[field] = entry;
    else if (const auto pairs = elementsOf(call, first))
      for (const Value &pair : *pairs)
        addPair(row, behind(call, pair), entries);
    else if (!given.positional.empty())
      entries[anyEntryField] = unknownValue();
    return result(row, allocated(call, row, dictType, recordValue(dictType, std::move(entries))));
  }
  if (name == "next") {
    const std::vector<Value> any = alternatives(call, first);
    return result(row, any.empty() ? unknownValue() : any.front());
  }
  if (name == "isinstance" && given.positional.size() > 1)
    return result(row, isInstance(call, first, given.positional[1].value));
  if (name == "getattr" && given.positional.size() > 1)
    if (const auto attribute = textOf(call, given.positional[1].value))
      return attributeOf(call, row, given.positional[0], *attribute);
  if (name == "setattr" && given.positional.size() > 2)
    if (const auto attribute = textOf(call, given.positional[1].value))
      return setAttribute(call, row, given.positional[0], *attribute, given.positional[2]);
  if (isOneOf(name, {"str", "int"}) && is(first, ValueKind::Scalar))
    return result(row, first);
  if (name == "int")
    return result(row, scalarValue(call.machine.freshScalar(call)));
  if (name == "map" && given.positional.size() == 2) {
    std::vector<Value> elements;
    Outcomes outcomes = result(row, unknownValue());
    for (const Value &each : alternatives(call, given.positional[1].value)) {
      Given argument;
      argument.positional.push_back({each, {}, given.positional[1].text, given.positional[1].written});
      Outcomes called = callValue(call, outcomes.front().row, first, argument, given.positional[0]);
      if (called.size() != 1)
        return result(row, unknownValue());
      elements.push_back(called.front().result);
      outcomes = std::move(called);
    }
    const bool isKnown = elementsOf(call, given.positional[1].value).has_value();
    Row after = std::move(outcomes.front().row);
    const Value list =
        allocated(call, after, "python::list", isKnown ? tupleValue(elements) : summaryOf(elements));
    return result(after, list);
  }
  if (name == "str" && is(first, ValueKind::Device))
    return result(row, first);
  if (name == "sum" || name == "max" || name == "min") {
    std::vector<Value> all = alternatives(call, first);
    if (!all.empty() && is(all.front(), ValueKind::Tensor)) {
      Outcomes outcomes = result(row, all.front());
      for (std::size_t i = 1; i < all.size(); ++i) {
        Outcomes next;
        for (Outcome &before : outcomes)
          for (Outcome &after :
               callTorch(call, std::move(before.row), "at::operator+",
                         {{before.result, {}, given.positional[0].text, given.positional[0].written},
                          {all[i], {}, given.positional[0].text, given.positional[0].written}},
                         false))
            next.push_back(std::move(after));
        outcomes = std::move(next);
      }
      return outcomes;
    }
  }
  return std::nullopt;
}

// sample() has the dimensions of the parameters, sample((n,)) more.
std::optional<Outcomes> drawn(const Row &row, const Value &where, const std::string &name,
                              const Given &given) {
  if (!isOneOf(name, {"sample", "rsample", "entropy", "log_prob"}))
    return std::nullopt;
  const bool isMore = !given.positional.empty() && is(where, ValueKind::Tensor);
  return result(row, isMore ? tensorValue(where->placement, someRank, where->history) : where);
}

} // namespace

std::optional<Outcomes> callContainerMethod(Call &call, Row &row, const Argument &object,
                                            const std::string &name, const Given &given) {
  if (isMissing(object.value))
    return builtin(call, row, name, given);
  const Value held = behind(call, object.value);
  if (is(object.value, ValueKind::Address) && is(held, ValueKind::List))
    return listMethod(call, row, object, held, name, given);
  if (is(held, ValueKind::Record) && held->type == distributionType)
    return drawn(row, held->fields.at("where"), name, given);
  if (is(held, ValueKind::Record) && held->type == generatorType && name == "manual_seed")
    return result(row, object.value);
  if (is(held, ValueKind::Record) && held->type == parserType)
    return parserMethod(call, row, object, held, name, given);
  if (is(object.value, ValueKind::Address) && isDict(held))
    return dictMethod(call, row, object, held, name, given);
  return std::nullopt;
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
           {"py_enter", python::enterWord},
           {"py_exit", python::exitWord}},
          {},
          {}};
}

} // namespace devicetidy
