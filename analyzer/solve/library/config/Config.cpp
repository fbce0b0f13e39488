//===- Config.cpp - entries of option containers, and option classes that have no model ---===//
#include "analyzer/solve/library/config/Config.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/library/config/MapText.h"
#include "analyzer/solve/library/config/Words.h"

namespace devicetidy {
namespace {

using models::Effect;

// A method of a class that has no model, where its name or its first argument is that of a device map:
// set("device_map", "auto"), device_map("auto"), get("device_map").
std::optional<Outcomes> option(Call &call, const Effect &) {
  const std::string_view method = lastPart(call.fact.name.view());
  const Address where = call.objectAddress();
  if (!call.fact.hasObject || !where.valid() || call.argCount() == 0)
    return std::nullopt;
  const Address entry = where.field(entryField(deviceMapKey));
  const bool isNamedSo = isDeviceMapKey(method) && call.argCount() == 1;
  const std::optional<std::string> key = isNamedSo ? std::nullopt : textArgument(call, 0);
  if (!isNamedSo && (!key || !isDeviceMapKey(*key)))
    return std::nullopt;
  if (isNamedSo || (call.argCount() >= 2 && isOptionSetter(method))) {
    call.machine.memory.write(call.row, entry, call.arg(isNamedSo ? 0 : 1));
    return call.done(call.fact.resultIsAddress ? addressValue(where) : call.machine.unknownResult(call));
  }
  const Value held = call.machine.memory.read(call.row, entry);
  if (!isOptionGetter(method) || is(held, ValueKind::Unknown))
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

Words optionWords() { return {{{"option", option}}, {}, {}}; }

} // namespace devicetidy
