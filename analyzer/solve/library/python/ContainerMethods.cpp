//===- ContainerMethods.cpp - methods of lists and dictionaries, and built-in functions ---===//
#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/Options.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/python/Lists.h"
#include "analyzer/solve/library/python/OpenValues.h"
#include "analyzer/solve/library/std/Containers.h"

#include <algorithm>

namespace devicetidy::python {

namespace {

constexpr std::int64_t mostCounted = 8; ///< numbers of a range that are told apart

Outcomes result(const Row &row, Value value) { return done(row, std::move(value)); }

std::optional<Outcomes> listMethod(Call &call, Row &row, const Argument &object, const Value &list,
                                   const std::string &name, const Given &given) {
  Memory &memory = call.machine.memory;
  const Address where = object.value->address;
  const Value first = given.positional.empty() ? unknownValue() : given.positional[0].value;
  Call inner{call.machine, call.frame, row, call.fact, call.first};
  if (name == "append" || name == "add")
    memory.write(row, where, appended(inner, list, listType, first));
  else if (isOneOf(name, {"insert", "appendleft"}) && !given.positional.empty())
    memory.write(row, where, inAnyOrder(appended(inner, list, listType, given.positional.back().value)));
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
  else if (isOneOf(name, {"pop", "popleft"})) {
    if (isSummary(list) || list->elements.empty())
      return result(row, isSummary(list) ? anyOf(list->summary) : unknownValue());
    std::vector<Value> rest = list->elements;
    const bool isFirst = name == "popleft" || row.numberOf(first) == 0;
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
    for (const Name field : fieldsInOrder(dict)) {
      const Value &entry = dict->fields.at(field);
      all.push_back(name == "keys"     ? keyOf(field)
                    : name == "values" ? entry
                                       : tupleValue({keyOf(field), entry}));
    }
    return result(row, allocated(call, row, "python::list", isWhole ? tupleValue(all) : summaryOf(all)));
  }
  const auto found = dict->fields.find(fieldOf(row, key));
  const Value otherwise = given.positional.size() > 1 ? given.positional[1].value : nullValue();
  if (isOneOf(name, {"get", "pop", "setdefault"})) {
    const bool isOpenKey = fieldOf(row, key) == anyEntryField;
    const bool isByDevice = found != dict->fields.end() && found->first == hidden::deviceKey;
    const Value entry = isByDevice || (hasDevice(key) && !isWhole) ? keptOnDevice(row, dict, key)
                        : found != dict->fields.end()              ? found->second
                        : isWhole                                  ? otherwise
                        : isOpenKey                                ? unknownValue()
                                                                   : dict->fields.at(anyEntryField);
    if (name == "setdefault") {
      ValueData data = *dict;
      setEntry(data.fields, fieldOf(row, key), entry);
      call.machine.memory.write(row, where, makeValue(std::move(data)));
    }
    // Under a key that is not known there may be nothing.
    std::optional<Outcomes> outcomes = result(row, entry);
    const bool isExact = found != dict->fields.end() && found->first != anyEntryField;
    if (!isExact && !is(entry, ValueKind::Unknown) && !same(entry, otherwise) && given.positional.size() > 1)
      outcomes->push_back({row, otherwise});
    return outcomes;
  }
  if (name == "update") {
    ValueData now = *dict;
    const Value from = behind(call, key);
    if (isDict(from))
      addEntries(from, now.fields);
    else if (!given.positional.empty())
      setEntry(now.fields, anyEntryField, unknownValue());
    for (const auto &[keyword, argument] : given.named)
      setEntry(now.fields, Name("[" + keyword.str() + "]"), argument.value);
    call.machine.memory.write(row, where, makeValue(std::move(now)));
    return result(row, nullValue());
  }
  if (name == "copy")
    return result(row, allocated(call, row, dictType, dict));
  if (name == "popitem") // which one it is does not matter where they are alike
    for (const auto &[field, entry] : dict->fields)
      if (isEntry(field))
        return result(row, tupleValue({keyOf(field), entry}));
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
  const bool isCounted = start && given.positional.size() < 3;
  return summaryOf(
      {isCounted ? scalarValue(applyTerm(op::plus, {intTerm(*start), elementIndex()})) : unknownValue()});
}

// A tuple for each object that a column can have; of tensors, which go together row by row, and where there
// are many, one for all.
std::vector<Value> combinations(const std::vector<std::vector<Value>> &columns) {
  std::vector<std::vector<Value>> all(1);
  for (const auto &column : columns) {
    const bool areObjects = !column.empty() && column.size() * all.size() <= bounds::listAlternatives &&
                            std::all_of(column.begin(), column.end(),
                                        [](const Value &each) { return is(each, ValueKind::Address); });
    const Value any = column.empty() ? unknownValue() : anyOf(column);
    std::vector<std::vector<Value>> longer;
    for (const Value &each : areObjects ? column : std::vector<Value>{any})
      for (std::vector<Value> tuple : all) {
        tuple.push_back(each);
        longer.push_back(std::move(tuple));
      }
    all = std::move(longer);
  }
  std::vector<Value> tuples(all.size());
  std::transform(all.begin(), all.end(), tuples.begin(),
                 [](std::vector<Value> &each) { return tupleValue(std::move(each)); });
  return tuples;
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
    tuple.reserve(columns.size());
    for (const auto &column : columns)
      tuple.push_back(column[i]);
    tuples.push_back(tupleValue(std::move(tuple)));
  }
  if (isKnown)
    return tupleValue(std::move(tuples));
  for (auto &column : columns)
    for (Value &each : column) // a parameter and a tensor that was computed
      if (column.size() > 1 && is(each, ValueKind::Tensor))
        each = call.machine.memory.snapshot(call.row, each);
  return summaryOf(combinations(columns));
}

// zip(*rows) of as many rows as there may be: the first of each of them, the second, and so on.
std::optional<Value> columnsOf(const Call &call, const Value &list) {
  const Value rows = list ? behind(call, list) : missing();
  if (!is(rows, ValueKind::List) || !isSummary(rows) || rows->summary.empty())
    return std::nullopt;
  std::vector<std::vector<Value>> columns;
  for (const Value &each : rows->summary) {
    const Value row = behind(call, each);
    if (!is(row, ValueKind::List) || isSummary(row) ||
        (!columns.empty() && columns.size() != row->elements.size()))
      return std::nullopt;
    columns.resize(row->elements.size());
    for (std::size_t i = 0; i < columns.size(); ++i)
      columns[i].push_back(row->elements[i]);
  }
  std::vector<Value> parts(columns.size());
  std::transform(columns.begin(), columns.end(), parts.begin(), summaryOf);
  return tupleValue(std::move(parts));
}

// The name that an argument of add_argument has among what the user gives; "?" where it is not known.
std::string optionNamed(const Call &call, const Given &given) {
  std::string option;
  for (const Argument &each : given.positional)
    if (const auto text = textOf(call, each.value); text && text->size() > option.size())
      option = *text;
  option.erase(0, std::min(option.find_first_not_of('-'), option.size()));
  if (const Argument *as = given.find("dest"))
    option = textOf(call, as->value).value_or(option);
  std::replace(option.begin(), option.end(), '-', '_');
  return option.empty() ? "?" : option;
}

// What the user gives for it: a value, or as many as there may be.
Value givenFor(const Call &call, const std::string &option, const Given &given) {
  const Argument *count = given.find("nargs"), *action = given.find("action");
  const auto does = action ? textOf(call, action->value) : std::nullopt;
  const bool isList = (count && textOf(call, count->value) != "?") || does == "append" || does == "extend";
  return isList ? openValue(optionTerm(option), Name(option), someRank, numberType) : optionOf(option);
}

// parser.add_argument("--name", ..) and what the user gives then. The options of groups and commands are
// among those of their parser.
std::optional<Outcomes> parserMethod(Call &call, Row &row, const Argument &object, const Value &parser,
                                     const std::string &name, const Given &given) {
  if (name == "add_argument") {
    const std::string option = optionNamed(call, given);
    call.machine.memory.write(row, object.value->address,
                              withField(parser, Name(option), givenFor(call, option, given)));
    return result(row, unknownValue());
  }
  if (isOneOf(name, {"add_argument_group", "add_mutually_exclusive_group", "add_subparsers", "add_parser"})) {
    if (const Argument *as = given.find("dest"))
      if (const auto option = textOf(call, as->value))
        call.machine.memory.write(row, object.value->address,
                                  withField(parser, Name(*option), optionOf(*option)));
    return result(row, object.value);
  }
  if (name == "set_defaults") {
    Value with = parser;
    for (const auto &[keyword, argument] : given.named)
      if (!with->fields.count(keyword)) // an option is what the user says
        with = withField(with, keyword, argument.value);
    call.machine.memory.write(row, object.value->address, with);
    return result(row, nullValue());
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
    setEntry(entries, fieldOf(row, pair->elements[0]), pair->elements[1]);
  else if (first != pair->fields.end() && second != pair->fields.end())
    setEntry(entries, fieldOf(row, first->second), second->second);
  else
    setEntry(entries, anyEntryField, unknownValue());
}

// What takes an object that can be gone through takes what its __iter__ gives.
std::optional<Outcomes> builtin(Call &call, Row &row, const std::string &name, const Given &given);

std::optional<Outcomes> onIterated(Call &call, Row &row, const std::string &name, const Given &given) {
  if (!isOneOf(name, {"list", "tuple", "sorted", "reversed", "set", "iter", "enumerate", "zip"}))
    return std::nullopt;
  Call inner{call.machine, call.frame, row, call.fact, call.first};
  std::optional<Outcomes> iterated;
  std::size_t at = 0;
  for (; at < given.positional.size() && (at == 0 || name == "zip"); ++at) {
    iterated = callSpecial(inner, given.positional[at], "__iter__", {});
    if (iterated)
      break;
  }
  if (!iterated)
    return std::nullopt;
  Outcomes outcomes;
  for (const Outcome &each : *iterated) {
    Row after = each.row;
    Given with = given;
    const Value held = behind(inner, each.result); // an iterator gives itself when it is asked for one
    const bool isIterator = is(held, ValueKind::Record) && findMethod(call.machine, held->type, "__iter__");
    with.positional[at].value = isIterator ? iterable(inner, after, each.result) : each.result;
    Call behindIt{call.machine, call.frame, after, call.fact, call.first};
    if (std::optional<Outcomes> made = builtin(behindIt, after, name, with))
      outcomes.insert(outcomes.end(), made->begin(), made->end());
    else
      outcomes.push_back({after, unknownValue()});
  }
  return outcomes;
}

// max and min of numbers: the same of the same ones. What is compared with a number is one.
Value extremeOf(const Call &call, const std::string &name, const std::vector<Value> &all) {
  const auto isNumber = [](const Value &each) { return is(each, ValueKind::Scalar); };
  if (!std::all_of(all.begin(), all.end(), isNumber)) {
    const auto mayBe = [&](const Value &each) { return isNumber(each) || is(each, ValueKind::Unknown); };
    const bool isOne =
        std::any_of(all.begin(), all.end(), isNumber) && std::all_of(all.begin(), all.end(), mayBe);
    return isOne ? scalarValue(call.machine.freshScalar(call)) : unknownValue();
  }
  std::vector<Term> terms(all.size());
  std::transform(all.begin(), all.end(), terms.begin(),
                 [&](const Value &each) { return call.row.resolve(each->term); });
  const auto isLess = [](Term a, Term b) { return *constantOf(a) < *constantOf(b); };
  if (!std::all_of(terms.begin(), terms.end(), [](Term each) { return constantOf(each).has_value(); }))
    return scalarValue(applyTerm(Name(name), std::move(terms)));
  return scalarValue(name == "max" ? *std::max_element(terms.begin(), terms.end(), isLess)
                                   : *std::min_element(terms.begin(), terms.end(), isLess));
}

std::optional<Outcomes> builtin(Call &call, Row &row, const std::string &name, const Given &given) {
  if (std::optional<Outcomes> outcomes = onIterated(call, row, name, given))
    return outcomes;
  const Value first = given.positional.empty() ? unknownValue() : given.positional[0].value;
  if (name == "len") {
    const auto elements = elementsOf(call, first);
    return result(row, scalarValue(elements        ? intTerm(std::int64_t(elements->size()))
                                   : isOpen(first) ? lengthOfOpen(first)
                                                   : call.machine.freshScalar(call)));
  }
  if (name == "range")
    return result(row, rangeOf(row, given));
  if (name == "zip" && given.positional.empty())
    if (const std::optional<Value> columns = columnsOf(call, given.rest))
      return result(row, *columns);
  if (name == "enumerate" || name == "zip") {
    std::vector<Value> lists;
    if (name == "enumerate") {
      std::vector<Value> numbers;
      if (const auto elements = elementsOf(call, first))
        for (std::size_t i = 0; i < elements->size(); ++i)
          numbers.push_back(scalarValue(intTerm(std::int64_t(i))));
      lists.push_back(elementsOf(call, first) ? tupleValue(numbers)
                                              : summaryOf({scalarValue(elementIndex())}));
    }
    for (const Argument &each : given.positional)
      lists.push_back(each.value);
    return result(row, tuplesOf(call, name == "enumerate" ? std::vector<Value>{lists[0], first} : lists));
  }
  if (isOneOf(name, {"list", "sorted", "reversed", "set", "tuple", "iter"})) {
    if (given.positional.empty())
      return result(row, listOf(call, row, {}));
    auto elements = elementsOf(call, first);
    if (elements && name == "reversed")
      std::reverse(elements->begin(), elements->end());
    const Value list = elements ? tupleValue(*elements) : summaryOf(alternatives(call, first));
    const bool isOrdered = name == "reversed" ? elements.has_value() : !isOneOf(name, {"sorted", "set"});
    const Value ordered = isOrdered ? list : inAnyOrder(list);
    return result(row, name == "tuple" ? ordered : allocated(call, row, "python::list", ordered));
  }
  if (name == "dict") {
    std::map<Name, Value> entries;
    for (const auto &[keyword, argument] : given.named)
      setEntry(entries, Name("[" + keyword.str() + "]"), argument.value);
    if (!given.positional.empty() && isDict(behind(call, first)))
      addEntries(behind(call, first), entries);
    else if (!given.positional.empty())
      for (const Value &pair : elementsOf(call, first).value_or(alternatives(call, first)))
        addPair(row, behind(call, pair), entries);
    return result(row, allocated(call, row, dictType, recordValue(dictType, std::move(entries))));
  }
  if (name == "next") {
    if (const auto elements = elementsOf(call, first); elements && elements->empty())
      return given.positional.size() > 1 ? result(row, given.positional[1].value) : Outcomes();
    const std::vector<Value> any = alternatives(call, first);
    return result(row, any.empty() ? unknownValue() : any.front());
  }
  if (std::optional<Outcomes> outcomes = reflected(call, row, name, given))
    return outcomes;
  if (const auto number = row.numberOf(first); name == "str" && number)
    return result(row, scalarValue(textTerm(Name(std::to_string(*number)))));
  if (isOneOf(name, {"str", "int"}) && is(first, ValueKind::Scalar))
    return result(row, first);
  if (const Term number = numberOfOpen(first); number && (name == "int" || (name == "str" && isOpen(first))))
    return result(row, scalarValue(number));
  if (name == "int")
    return result(row, scalarValue(call.machine.freshScalar(call)));
  if (name == "str" && is(first, ValueKind::Device))
    return result(row, first);
  if (name == "max" || name == "min") {
    std::vector<Value> all;
    if (given.positional.size() == 1)
      all = alternatives(call, first);
    else
      for (const Argument &each : given.positional)
        all.push_back(each.value);
    const bool areAll = given.positional.size() > 1 || elementsOf(call, first); // and not what each may be
    if (const Value number = areAll && all.size() > 1 ? extremeOf(call, name, all) : unknownValue();
        is(number, ValueKind::Scalar))
      return result(row, number);
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

} // namespace

std::optional<Outcomes> callContainerMethod(Call &call, Row &row, const Argument &object,
                                            const std::string &name, const Given &given) {
  if (isMissing(object.value))
    return builtin(call, row, name, given);
  const Value held = behind(call, object.value);
  if (is(held, ValueKind::Record) && held->type == varsType)
    return name == "update" ? setAttributes(call, row, held, given)
                            : dictMethod(call, row, object, attributesOf(call, held), name, given);
  if (const auto text = textOf(call, object.value))
    return callTextMethod(call, row, *text, name, given);
  if (is(object.value, ValueKind::Address) && is(held, ValueKind::List))
    return listMethod(call, row, object, held, name, given);
  if (is(held, ValueKind::Record) && held->type == generatorType && name == "manual_seed")
    return result(row, object.value);
  if (is(held, ValueKind::Record) && held->type == hookType && name == "remove") {
    removeHook(call, row, held);
    return result(row, nullValue());
  }
  if (is(held, ValueKind::Record) && held->type == parserType)
    return parserMethod(call, row, object, held, name, given);
  if (is(object.value, ValueKind::Address) && isDict(held))
    return dictMethod(call, row, object, held, name, given);
  return std::nullopt;
}

} // namespace devicetidy::python
