#include "analyzer/solve/library/config/Config.h"

#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/library/config/MapText.h"

namespace devicetidy {
namespace {

// count, contains and erase of a map all of whose keys are known.
std::optional<Outcomes> modelEntries(Call &call, std::string_view method) {
  static const Name anyEntry("@any");
  Value map = call.object();
  const Address where = call.objectAddress();
  std::optional<std::string> key = textArgument(call, 0);
  if (!key || !is(map, ValueKind::Record) || map->origin || map->fields.count(anyEntry) || !where.valid())
    return std::nullopt;
  const Name field = entryField(*key);
  if (method == "count" || method == "contains")
    return call.done(scalarValue(intTerm(map->fields.count(field) != 0)));
  if (method != "erase")
    return std::nullopt;
  call.machine.memory.write(call.row, where, withoutField(map, field));
  return call.done(call.machine.unknownResult(call));
}

// Option classes nobody has a model of: set("device_map", "auto"), device_map("auto"), get("device_map").
std::optional<Outcomes> modelOption(Call &call, std::string_view method) {
  const Address where = call.objectAddress();
  if (!where.valid() || call.argCount() == 0)
    return std::nullopt;
  auto result = [&] {
    return call.done(call.fact.resultIsAddress ? addressValue(where) : call.machine.unknownResult(call));
  };
  if (isDeviceMapKey(method) && call.argCount() == 1) {
    call.machine.memory.write(call.row, where.field(entryField("device_map")), call.arg(0));
    return result();
  }
  std::optional<std::string> key = textArgument(call, 0);
  if (!key || !isDeviceMapKey(*key))
    return std::nullopt;
  const Address entry = where.field(entryField("device_map"));
  if (call.argCount() >= 2 &&
      (method.substr(0, 3) == "set" || method.substr(0, 3) == "add" || method == "put" ||
       method.substr(0, 6) == "insert" || method == "emplace" || method == "define")) {
    call.machine.memory.write(call.row, entry, call.arg(1));
    return result();
  }
  Value held = call.machine.memory.read(call.row, entry);
  const bool reads =
      method.substr(0, 3) == "get" || method == "at" || method == "value" || method == "operator[]";
  if (!reads || is(held, ValueKind::Unknown))
    return std::nullopt;
  return call.done(call.fact.resultIsAddress ? addressValue(entry) : held);
}

} // namespace

Name entryField(std::string_view key) { return Name("[" + std::string(key) + "]"); }

bool isEntry(std::string_view field) {
  return field.size() >= 2 && field.front() == '[' && field.back() == ']';
}

std::string_view keyOfField(std::string_view field) {
  return isEntry(field) ? field.substr(1, field.size() - 2) : field;
}

Value entryValue(const Value &entry) {
  static const Name first("first"), second("second");
  const bool isPair = is(entry, ValueKind::Record) && entry->fields.count(first);
  auto value = entry->fields.find(second);
  return isPair && value != entry->fields.end() ? value->second : entry;
}

std::optional<std::string> textArgument(const Call &call, std::size_t i) {
  Value value = call.arg(i);
  if (is(value, ValueKind::Scalar))
    if (std::optional<Name> text = textOf(call.row.resolve(value->term)))
      return text->str();
  return std::nullopt;
}

Value withoutField(const Value &record, Name field) {
  ValueData data = *record;
  data.fields.erase(field);
  return makeValue(std::move(data));
}

std::optional<Outcomes> modelConfig(Call &call) {
  if (std::optional<Outcomes> outcomes = modelJson(call))
    return outcomes;
  if (std::optional<Outcomes> outcomes = modelPython(call))
    return outcomes;
  if (!call.fact.hasObject || call.fact.operands.empty())
    return std::nullopt;
  const std::string_view method = lastPart(call.fact.name.view());
  switch (call.machine.types.classOf(call.fact.operands[0].type)) {
  case TypeClass::Map:
    return modelEntries(call, method);
  case TypeClass::Record:
  case TypeClass::Other:
    return modelOption(call, method);
  default:
    return std::nullopt;
  }
}

std::optional<Value> constructConfig(Call &call, Name type, const std::vector<Value> &args) {
  if (std::optional<Value> made = constructJson(call, type, args))
    return made;
  return constructPython(call, type, args);
}

} // namespace devicetidy
