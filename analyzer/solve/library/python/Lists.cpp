#include "analyzer/solve/library/python/Lists.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/Ends.h"
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/python/OpenValues.h"
#include "analyzer/solve/library/std/Containers.h"

#include <algorithm>
#include <cstdlib>

namespace devicetidy::python {

Value tupleValue(std::vector<Value> elements) { return listValue(listType, std::move(elements)); }

bool isDict(const Value &held) {
  return is(held, ValueKind::Record) && (held->type == dictType || held->fields.count(dictField) != 0);
}

bool isEntry(Name field) { return !field.empty() && field.view().front() == '['; }

namespace {

const Name orderField("@order"); // of a dictionary: its keys
constexpr std::size_t mostOrdered = 64;

void appendKey(std::map<Name, Value> &entries, Name field) {
  Value &order = entries[orderField];
  std::vector<Value> keys = order && is(order, ValueKind::List) ? order->elements : std::vector<Value>();
  if (keys.size() < mostOrdered)
    keys.push_back(scalarValue(textTerm(field)));
  order = tupleValue(std::move(keys));
}

} // namespace

std::vector<Name> fieldsInOrder(const Value &dict) {
  std::vector<Name> fields;
  if (const auto order = dict->fields.find(orderField);
      order != dict->fields.end() && is(order->second, ValueKind::List) && !isSummary(order->second))
    for (const Value &key : order->second->elements)
      if (is(key, ValueKind::Scalar) && key->term->kind == TermKind::Text &&
          dict->fields.count(key->term->name))
        fields.push_back(key->term->name);
  for (const auto &[field, entry] : dict->fields)
    if (isEntry(field) && std::find(fields.begin(), fields.end(), field) == fields.end())
      fields.push_back(field);
  return fields;
}

void setEntry(std::map<Name, Value> &entries, Name field, const Value &value) {
  if (field != anyEntryField) {
    if (!entries.count(field))
      appendKey(entries, field);
    entries[field] = value;
    return;
  }
  entries.try_emplace(field, value);
  for (auto &[key, entry] : entries)
    if (isEntry(key)) // of objects of their own, the last one stands for all
      entry = key == field && is(value, ValueKind::Address) ? value : anyOf({entry, value});
}

void setEntryUnder(const Row &row, std::map<Name, Value> &entries, const Value &key, const Value &value) {
  const Name field = fieldOf(row, key);
  const Term text = is(key, ValueKind::Scalar) ? row.resolve(key->term) : nullptr;
  const bool isBegun =
      field == anyEntryField && text && applies(text, op::concat) && text->args[0]->kind == TermKind::Text;
  std::map<Name, Value> others;
  if (isBegun) {
    const std::string begin = "[" + text->args[0]->name.str();
    for (const auto &[name, entry] : entries)
      if (isEntry(name) && name != anyEntryField && !startsWith(name.view(), begin))
        others.emplace(name, entry);
  }
  setEntry(entries, field, value);
  keepOnDevice(row, entries, key, value);
  for (auto &[name, entry] : others)
    entries[name] = std::move(entry);
}

void addEntries(const Value &dict, std::map<Name, Value> &entries) {
  for (const Name field : fieldsInOrder(dict))
    setEntry(entries, field, dict->fields.at(field));
}

Name fieldOf(const Row &row, const Value &key) { return keyField(row, key).value_or(anyEntryField); }

bool hasDevice(const Value &key) {
  return is(key, ValueKind::Device) ||
         (is(key, ValueKind::List) && std::any_of(key->elements.begin(), key->elements.end(), hasDevice));
}

Value keyOf(Name field) {
  const std::string_view text = field.view();
  if (field == anyEntryField || text.size() < 2 || startsWith(text, "[#(")) // a tuple
    return unknownValue();
  return startsWith(text, "[#")
             ? scalarValue(intTerm(std::strtoll(std::string(text.substr(2)).c_str(), nullptr, 10)))
             : scalarValue(textTerm(Name(text.substr(1, text.size() - 2))));
}

std::optional<bool> hasKey(const Row &row, const Value &dict, const Value &key) {
  const std::optional<Name> field = keyField(row, key);
  if (!field || dict->fields.count(anyEntryField) || dict->fields.count(hidden::deviceKey))
    return std::nullopt;
  return dict->fields.count(*field) != 0;
}

std::optional<std::vector<Value>> elementsOf(const Call &call, const Value &value) {
  const Value held = behind(call, value);
  if (is(held, ValueKind::List) && !isSummary(held))
    return held->elements;
  if (is(held, ValueKind::Record) && held->fields.count(hidden::children)) {
    const Value children = held->fields.at(hidden::children);
    if (is(children, ValueKind::List) && !isSummary(children))
      return children->elements;
  }
  if (is(held, ValueKind::Record) && held->type == parameterListType && !held->fields.count(anyEntryField)) {
    std::vector<Value> parameters;
    for (auto at = held->fields.find("[#0]"); at != held->fields.end();
         at = held->fields.find(Name("[#" + std::to_string(parameters.size()) + "]")))
      parameters.push_back(at->second);
    return parameters;
  }
  if (is(held, ValueKind::Record) && held->type == varsType)
    return elementsOf(call, attributesOf(call, held));
  if (!isDict(held) || held->fields.count(anyEntryField))
    return std::nullopt;
  std::vector<Value> keys;
  for (const Name field : fieldsInOrder(held))
    keys.push_back(keyOf(field));
  return keys;
}

namespace {

// Which element of a list of unknown length stands at a place of a part of it.
Term behindPart(const Row &row, const Value &slice) {
  static const Name reordered("reordered");
  const auto lower = slice->fields.find("lower"), step = slice->fields.find("step");
  if (step != slice->fields.end() && row.numberOf(step->second) != 1)
    return applyTerm(reordered, {elementIndex()});
  if (lower == slice->fields.end())
    return elementIndex();
  const auto number = row.numberOf(lower->second);
  if (!number && !is(lower->second, ValueKind::Scalar))
    return applyTerm(reordered, {elementIndex()});
  const Term first = number && *number < 0 ? fromTheEnd(*number) : row.resolve(lower->second->term);
  return applyTerm(op::plus, {elementIndex(), first});
}

} // namespace

Term fromTheEnd(std::int64_t number) {
  static const Name end("from the end");
  return number == -1 ? applyTerm(op::back, {textTerm("a list")}) : applyTerm(end, {intTerm(number)});
}

Value partOf(const Row &row, const Value &list, const Value &slice) {
  if (isSummary(list)) {
    std::vector<Value> shifted;
    for (const Value &each : list->summary)
      shifted.push_back(substitute(each, elementIndex(), behindPart(row, slice)));
    return slice->fields.empty() ? list : summaryOf(shifted);
  }
  const auto size = static_cast<std::int64_t>(list->elements.size());
  bool isKnown = true;
  const auto end = [&](const char *name, std::int64_t otherwise) {
    const auto given = slice->fields.find(Name(name));
    if (given == slice->fields.end())
      return otherwise;
    const std::optional<std::int64_t> number = row.numberOf(given->second);
    isKnown &= number.has_value();
    return number.value_or(otherwise);
  };
  const std::int64_t step = end("step", 1);
  // Ends count from behind when they are negative, and stop at the list's own (Python reference 3.3.2).
  const std::int64_t first = step < 0 ? -1 : 0, last = step < 0 ? size - 1 : size;
  const auto within = [&](std::int64_t at) { return std::clamp(at < 0 ? at + size : at, first, last); };
  const bool hasLower = slice->fields.count(Name("lower")) != 0,
             hasUpper = slice->fields.count(Name("upper")) != 0;
  const std::int64_t lower = hasLower   ? within(end("lower", 0))
                             : step < 0 ? last
                                        : first,
                     upper = hasUpper   ? within(end("upper", 0))
                             : step < 0 ? first
                                        : last;
  if (!isKnown || step == 0)
    return summaryOf(list->elements);
  std::vector<Value> part;
  for (std::int64_t at = lower; step < 0 ? at > upper : at < upper; at += step)
    part.push_back(list->elements[static_cast<std::size_t>(at)]);
  return tupleValue(std::move(part));
}

std::vector<Value> alternatives(const Call &call, const Value &value) {
  const Value held = behind(call, value);
  if (is(held, ValueKind::List))
    return isSummary(held) ? held->summary : held->elements;
  if (is(held, ValueKind::Tensor)) {
    const int rank = call.machine.memory.rankOf(call.row, held);
    return {tensorValue(call.machine.memory.placementOf(call.row, held), rank > 0 ? rank - 1 : unknownRank,
                        call.machine.memory.historyOf(call.row, held))};
  }
  if (is(held, ValueKind::Record) && held->type == loaderType)
    return {held->fields.at("batch")};
  if (is(held, ValueKind::Record) && held->fields.count(hidden::children)) // of a container of modules
    return alternatives(call, held->fields.at(hidden::children));
  if (is(held, ValueKind::Record) && held->type == parameterListType && held->fields.count(anyEntryField))
    return {held->fields.at(anyEntryField)};
  return {isOpen(value) ? elementOfOpen(call, call.row, value) : isOfHost(value) ? value : unknownValue()};
}

Value summaryOf(const std::vector<Value> &all) {
  return summaryList(listType, all.empty() ? std::vector<Value>{unknownValue()} : all);
}

Value listBeginning(const std::vector<Value> &first, const std::vector<Value> &others) {
  Value list = summaryOf(others);
  for (auto each = first.rbegin(); each != first.rend(); ++each)
    list = prepended(list, *each);
  return list;
}

} // namespace devicetidy::python
