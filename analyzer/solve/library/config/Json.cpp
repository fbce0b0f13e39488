//===- Json.cpp - nlohmann::json ------------------------------------===//
//
// Objects are records with "[key]" fields, arrays are lists, leaves are scalars, and null is null. Text that
// is known is parsed; what comes from a file is unknown.
//
//===----------------------------------------------------------------------===//
#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/library/config/Config.h"
#include "analyzer/solve/library/config/Words.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace devicetidy {
namespace {

using models::Effect;

const Name jsonType("nlohmann::basic_json");

Value valueOf(const nlohmann::json &json) {
  if (json.is_object()) {
    std::map<Name, Value> fields;
    for (const auto &[key, entry] : json.items())
      fields[entryField(key)] = valueOf(entry);
    return recordValue(jsonType, std::move(fields));
  }
  if (json.is_array()) {
    std::vector<Value> elements;
    for (const auto &element : json)
      elements.push_back(valueOf(element));
    return listValue(jsonType, std::move(elements));
  }
  if (json.is_string())
    return scalarValue(textTerm(Name(json.get<std::string>())));
  if (json.is_boolean())
    return scalarValue(intTerm(json.get<bool>()));
  if (json.is_number_integer())
    return scalarValue(intTerm(json.get<std::int64_t>()));
  return json.is_null() ? nullValue() : scalarValue(symbolTerm("a floating-point number"));
}

Value parsed(const std::string &text) {
  const auto json =
      nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false, /*ignore_comments=*/true);
  return json.is_discarded() ? unknownValue() : valueOf(json);
}

bool isPair(const Value &value) {
  return is(value, ValueKind::List) && !isSummary(value) && value->elements.size() == 2 &&
         is(value->elements[0], ValueKind::Scalar) && textOf(value->elements[0]->term);
}

// {{"a", 1}, {"b", 2}} is an object, any other list an array.
Value fromList(const Value &list) {
  if (!is(list, ValueKind::List) || isSummary(list))
    return unknownValue();
  if (list->elements.empty() || !std::all_of(list->elements.begin(), list->elements.end(), isPair))
    return listValue(jsonType, list->elements);
  std::map<Name, Value> fields;
  for (const Value &pair : list->elements)
    fields[entryField(textOf(pair->elements[0]->term)->view())] = pair->elements[1];
  return recordValue(jsonType, std::move(fields));
}

// Objects and standard maps keep the same entries; a map's are pairs of key and value.
Value asMap(const Value &json, Name type) {
  std::map<Name, Value> fields;
  for (const auto &[name, entry] : json->fields) {
    const Value key = scalarValue(textTerm(Name(keyOfField(name.view()))));
    fields[name] =
        recordValue("std::pair", {{"first", key}, {"key", key}, {"second", entry}, {"value", entry}});
  }
  return recordValue(type, std::move(fields));
}

Value fromMap(const Value &map) {
  std::map<Name, Value> fields;
  for (const auto &[name, entry] : map->fields)
    fields[name] = entryValue(entry);
  return recordValue(jsonType, std::move(fields));
}

bool isKnownObject(const Value &json) { return is(json, ValueKind::Record) && !json->origin; }

// The user's from_json(const json &, T &), as get<T>() calls it.
const Function *converter(const Machine &machine, Name type) {
  static constexpr std::string_view name = "from_json";
  for (Name id : machine.program.order) {
    const Function *function = machine.program.function(id);
    if (lastPart(function->name.view()) == name && function->hasBody && function->paramCount == 2 &&
        function->locals[1].type == type)
      return function;
  }
  return nullptr;
}

std::optional<Outcomes> convert(Call &call, const Effect &) {
  Machine &machine = call.machine;
  const Name type = call.resultType();
  Value json = call.object();
  const Function *function = machine.types.isProject(type) ? converter(machine, type) : nullptr;
  if (!function) {
    if (isKnownObject(json) && machine.types.classOf(type) == TypeClass::Map)
      return call.done(asMap(json, type));
    const bool plain = !is(json, ValueKind::Unknown) && !machine.types.isProject(type);
    return call.done(plain ? json : machine.unknownResult(call));
  }
  Row row = call.row;
  const Address target = machine.allocate(row, call.frame, call.fact, type);
  machine.memory.write(row, target, recordValue(type));
  Outcomes outcomes = invokeForwarded(call, std::move(row), *function, {},
                                      {{json, call.objectAddress()}, {addressValue(target), target}});
  for (Outcome &outcome : outcomes)
    outcome.result = machine.memory.read(outcome.row, target);
  return outcomes;
}

std::optional<Outcomes> entry(Call &call, const Effect &) {
  if (!call.fact.resultIsAddress)
    return std::nullopt;
  const Address where = call.objectAddress();
  Value json = call.object(), key = call.arg(0);
  if (!where.valid() || !is(key, ValueKind::Scalar))
    return call.done(unknownValue());
  const Term term = call.row.resolve(key->term);
  std::optional<Name> text = textOf(term);
  if (!text && (!constantOf(term) || !is(json, ValueKind::List)))
    return call.done(unknownValue());
  const Address at = text ? where.field(entryField(text->view())) : where.element(term);
  // operator[] of an object that lacks the key makes a null.
  const bool isNew =
      text && (is(json, ValueKind::Null) || isKnownObject(json)) && !json->fields.count(at.path->field);
  if (isNew)
    call.machine.memory.write(call.row, at, nullValue());
  return call.done(addressValue(at));
}

std::optional<Outcomes> valueOrDefault(Call &call, const Effect &) {
  Value json = call.object();
  std::optional<std::string> key = textArgument(call, 0);
  if (!key || !is(json, ValueKind::Record))
    return call.done(call.machine.unknownResult(call));
  auto found = json->fields.find(entryField(*key));
  if (found != json->fields.end())
    return call.done(found->second);
  return call.done(isKnownObject(json) && call.argCount() > 1 ? call.arg(1)
                                                              : call.machine.unknownResult(call));
}

bool isKnown(const Call &call, const Value &json) {
  return isKnownObject(json) || is(json, ValueKind::Null) || is(json, ValueKind::List) ||
         (is(json, ValueKind::Scalar) && call.row.resolve(json->term)->kind != TermKind::Symbol);
}

std::optional<Outcomes> truth(Call &call, bool holds) { return call.done(scalarValue(intTerm(holds))); }

// is_null(), is_object() and is_array(): the value of this kind.
std::optional<Outcomes> isOfKind(Call &call, const Effect &effect) {
  static const std::map<std::string_view, ValueKind> kinds = {
      {"null", ValueKind::Null}, {"object", ValueKind::Record}, {"array", ValueKind::List}};
  const Value json = call.object();
  return isKnown(call, json) ? truth(call, is(json, kinds.at(effect.detail()))) : std::nullopt;
}

std::optional<Outcomes> isString(Call &call, const Effect &) {
  const Value json = call.object();
  if (!isKnown(call, json))
    return std::nullopt;
  return truth(call, is(json, ValueKind::Scalar) && textOf(call.row.resolve(json->term)));
}

std::optional<Outcomes> hasEntry(Call &call, const Effect &) {
  const Value json = call.object();
  const std::optional<std::string> key = textArgument(call, 0);
  if (!key || !isKnown(call, json))
    return std::nullopt;
  return truth(call, json->fields.count(entryField(*key)) != 0);
}

Outcomes become(Call &call, const Value &value) {
  const Address where = call.objectAddress();
  call.machine.memory.write(call.row, where, value);
  return call.done(call.fact.resultIsAddress ? addressValue(where) : call.machine.unknownResult(call));
}

// The object, made anew where it is none yet.
Value objectToChange(const Call &call) {
  const Value json = call.object();
  return is(json, ValueKind::Record) ? json : recordValue(jsonType);
}

std::optional<Outcomes> clear(Call &call, const Effect &) { return become(call, nullValue()); }

std::optional<Outcomes> erase(Call &call, const Effect &) {
  const std::optional<std::string> key = textArgument(call, 0);
  const Value json = call.object();
  if (!key || !is(json, ValueKind::Record))
    return std::nullopt;
  return become(call, withoutField(json, entryField(*key)));
}

std::optional<Outcomes> emplace(Call &call, const Effect &) {
  const std::optional<std::string> key = textArgument(call, 0);
  if (!key)
    return std::nullopt;
  return become(call, withField(objectToChange(call), entryField(*key), call.arg(1)));
}

// update() and merge_patch(), which takes away what is null.
std::optional<Outcomes> update(Call &call, const Effect &effect) {
  const bool isPatch = effect.says("patch");
  const Value added = call.arg(0);
  if (!is(added, ValueKind::Record))
    return std::nullopt;
  Value merged = objectToChange(call);
  for (const auto &[name, field] : added->fields)
    merged =
        isPatch && is(field, ValueKind::Null) ? withoutField(merged, name) : withField(merged, name, field);
  return become(call, merged);
}

std::optional<Outcomes> parse(Call &call, const Effect &) {
  const std::optional<std::string> text = textArgument(call, 0);
  return call.done(text ? parsed(*text) : unknownValue());
}

// json::object() and json::array(), of a list or empty.
std::optional<Outcomes> object(Call &call, const Effect &) {
  const bool isListed = call.argCount() && is(call.arg(0), ValueKind::List);
  return call.done(isListed ? fromList(call.arg(0)) : recordValue(jsonType));
}

std::optional<Outcomes> array(Call &call, const Effect &) {
  const bool isListed = call.argCount() && is(call.arg(0), ValueKind::List);
  return call.done(isListed ? fromList(call.arg(0)) : listValue(jsonType, {}));
}

std::optional<Outcomes> getTo(Call &call, const Effect &) {
  const Address to = call.addressOf(call.first);
  if (!to.valid())
    return std::nullopt;
  call.machine.memory.write(call.row, to, call.object());
  return call.done(addressValue(to));
}

std::optional<Outcomes> makeJson(const Making &making, const Effect &) {
  static const Name braces("std::initializer_list");
  if (making.args.empty())
    return making.done(nullValue());
  const Types &types = making.call.machine.types;
  const Value from = making.arg(0);
  const Type *list = is(from, ValueKind::List) ? types.program.type(from->type) : nullptr;
  if (list && list->templateName == braces)
    return making.done(fromList(from));
  const bool isMap =
      is(from, ValueKind::Record) && types.classOf(from->type) == TypeClass::Map && !from->origin;
  return making.done(isMap ? fromMap(from) : from);
}

} // namespace

Words jsonWords() {
  return {{{"json_parse", parse},
           {"json_object", object},
           {"json_array", array},
           {"json_entry", entry},
           {"json_value", valueOrDefault},
           {"json_convert", convert},
           {"json_get_to", getTo},
           {"json_is", isOfKind},
           {"json_is_string", isString},
           {"json_has_entry", hasEntry},
           {"json_clear", clear},
           {"json_erase", erase},
           {"json_emplace", emplace},
           {"json_update", update}},
          {},
          {{"make_json", makeJson}}};
}

} // namespace devicetidy
