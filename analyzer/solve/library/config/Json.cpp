//===- Json.cpp - nlohmann::json ------------------------------------===//
//
// Objects are records with "[key]" fields, arrays are lists, leaves are scalars, and null is null. Text that
// is known is parsed; what comes from a file is unknown.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/library/config/Config.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace devicetidy {
namespace {

const Name jsonType("nlohmann::basic_json");
constexpr std::string_view classPrefix = "nlohmann::basic_json::";

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
  for (Name id : machine.program.order) {
    const Function *function = machine.program.function(id);
    const std::string_view name = function->name.view();
    const bool named =
        name == "from_json" || (name.size() > 11 && name.substr(name.size() - 11) == "::from_json");
    if (named && function->hasBody && function->paramCount == 2 && function->locals[1].type == type)
      return function;
  }
  return nullptr;
}

Outcomes convert(Call &call, Name type) {
  Machine &machine = call.machine;
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

Outcomes entry(Call &call) {
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

Outcomes valueOrDefault(Call &call) {
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

std::optional<Outcomes> answer(Call &call, std::string_view method) {
  Value json = call.object();
  const bool known = isKnownObject(json) || is(json, ValueKind::Null) || is(json, ValueKind::List) ||
                     (is(json, ValueKind::Scalar) && call.row.resolve(json->term)->kind != TermKind::Symbol);
  auto yes = [&](bool holds) { return call.done(scalarValue(intTerm(holds))); };
  const bool isText = is(json, ValueKind::Scalar) && textOf(call.row.resolve(json->term));
  if (!known)
    return std::nullopt;
  if (method == "is_null")
    return yes(is(json, ValueKind::Null));
  if (method == "is_object")
    return yes(is(json, ValueKind::Record));
  if (method == "is_array")
    return yes(is(json, ValueKind::List));
  if (method == "is_string")
    return yes(isText);
  std::optional<std::string> key = call.argCount() ? textArgument(call, 0) : std::nullopt;
  if ((method == "contains" || method == "count") && key)
    return yes(json->fields.count(entryField(*key)) != 0);
  return std::nullopt;
}

std::optional<Outcomes> change(Call &call, std::string_view method) {
  const Address where = call.objectAddress();
  Value json = call.object();
  auto write = [&](const Value &value) {
    call.machine.memory.write(call.row, where, value);
    return call.done(call.fact.resultIsAddress ? addressValue(where) : call.machine.unknownResult(call));
  };
  if (method == "operator=")
    return write(call.arg(0));
  if (method == "clear")
    return write(nullValue());
  std::optional<std::string> key = call.argCount() ? textArgument(call, 0) : std::nullopt;
  if (method == "erase" && key && is(json, ValueKind::Record))
    return write(withoutField(json, entryField(*key)));
  if (method == "emplace" && key && call.argCount() == 2)
    return write(
        withField(is(json, ValueKind::Record) ? json : recordValue(jsonType), entryField(*key), call.arg(1)));
  if ((method == "update" || method == "merge_patch") && is(call.arg(0), ValueKind::Record)) {
    Value merged = is(json, ValueKind::Record) ? json : recordValue(jsonType);
    for (const auto &[name, field] : call.arg(0)->fields)
      merged = method == "merge_patch" && is(field, ValueKind::Null) ? withoutField(merged, name)
                                                                     : withField(merged, name, field);
    return write(merged);
  }
  return std::nullopt;
}

} // namespace

std::optional<Outcomes> modelJson(Call &call) {
  const std::string_view name = call.fact.name.view();
  if (!startsWith(name, "nlohmann::"))
    return std::nullopt;
  if (name == "nlohmann::operator\"\"_json" || name == "nlohmann::basic_json::parse" ||
      name == "nlohmann::literals::json_literals::operator\"\"_json") {
    std::optional<std::string> text = textArgument(call, 0);
    return call.done(text ? parsed(*text) : unknownValue());
  }
  if (!startsWith(name, classPrefix))
    return std::nullopt;
  const std::string_view method = name.substr(classPrefix.size());
  if (!call.fact.hasObject) {
    if (isOneOf(method, {"object", "array"}))
      return call.done(call.argCount() && is(call.arg(0), ValueKind::List) ? fromList(call.arg(0))
                       : method == "object"                                ? recordValue(jsonType)
                                                                           : listValue(jsonType, {}));
    return std::nullopt;
  }
  if (isOneOf(method, {"operator[]", "at"}) && call.fact.resultIsAddress)
    return entry(call);
  if (method == "value")
    return valueOrDefault(call);
  if (isOneOf(method, {"get", "get_ref", "get_ptr"}) || startsWith(method, "operator ")) {
    return convert(call, call.resultType());
  }
  if (method == "get_to" && call.addressOf(call.first).valid()) {
    call.machine.memory.write(call.row, call.addressOf(call.first), call.object());
    return call.done(addressValue(call.addressOf(call.first)));
  }
  if (std::optional<Outcomes> outcomes = answer(call, method))
    return outcomes;
  return change(call, method);
}

std::optional<Value> constructJson(Call &call, Name type, const std::vector<Value> &args) {
  const Type *record = call.machine.program.type(type);
  const std::string_view name = record ? record->templateName.view() : type.view();
  if (name != jsonType.view() && name != "nlohmann::detail::json_ref")
    return std::nullopt;
  if (args.empty())
    return nullValue();
  if (is(args[0], ValueKind::List) && startsWith(args[0]->type.view(), "std::initializer_list"))
    return fromList(args[0]);
  const bool isMap = is(args[0], ValueKind::Record) &&
                     call.machine.types.classOf(args[0]->type) == TypeClass::Map && !args[0]->origin;
  return isMap ? fromMap(args[0]) : args[0];
}

} // namespace devicetidy
