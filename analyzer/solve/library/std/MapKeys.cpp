//===- MapKeys.cpp - the field a map keeps an entry in ---===//
//
// A number or a text that is known names a field of its own. Caches are kept by device: a key that is made of
// a device that is not known names the field that all such keys share.
//
//===----------------------------------------------------------------------===//
#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/std/Containers.h"

#include <algorithm>
#include <cstdlib>

namespace devicetidy {
namespace {

bool isOfDevice(Term term) {
  return term->kind == TermKind::Apply &&
         (term->name == op::ofDevice || std::any_of(term->args.begin(), term->args.end(), isOfDevice));
}

std::optional<Name> fieldOfDevice(const Row &row, const Placement &device) {
  const Placement placement = row.resolve(device);
  return isConstant(placement) ? Name("[" + placement.describe() + "]") : hidden::deviceKey;
}

// A pair or tuple of keys is one key.
std::optional<Name> fieldOfParts(const Row &row, const std::vector<Value> &parts) {
  std::string text;
  bool isKnown = !parts.empty();
  for (const Value &part : parts) {
    const std::optional<Name> field = keyField(row, part);
    if (field == hidden::deviceKey)
      return field;
    isKnown = isKnown && field;
    text += field ? field->str() : std::string();
  }
  return isKnown ? std::optional<Name>(Name("[#(" + text + ")]")) : std::nullopt;
}

std::vector<Value> partsOf(const Value &key) {
  std::vector<Value> parts = key->elements;
  for (const auto &[name, part] : key->fields)
    parts.push_back(part);
  return parts;
}

} // namespace

Value keyMadeOf(const Value &device) {
  return scalarValue(applyTerm(
      op::ofDevice, {is(device, ValueKind::Device) ? deviceTerm(device->placement) : device->term}));
}

bool isMadeOfDevice(const Value &text) {
  return is(text, ValueKind::Device) || (is(text, ValueKind::Scalar) && isOfDevice(text->term));
}

std::optional<Name> keyField(const Row &row, const Value &key) {
  if (is(key, ValueKind::Device))
    return fieldOfDevice(row, key->placement);
  if ((is(key, ValueKind::Record) && !key->origin) || (is(key, ValueKind::List) && !isSummary(key)))
    return fieldOfParts(row, partsOf(key));
  if (!is(key, ValueKind::Scalar))
    return std::nullopt;
  const Term term = row.resolve(key->term);
  if (std::optional<Name> text = textOf(term))
    return Name("[" + text->str() + "]");
  if (auto number = constantOf(term))
    return Name("[#" + std::to_string(*number) + "]");
  return isOfDevice(term) ? std::optional<Name>(hidden::deviceKey) : std::nullopt;
}

// Entries are pairs, as iteration sees them.
Value mapEntry(Name key, Value value, const Value &keyValue) {
  Value first = keyValue && !is(keyValue, ValueKind::Scalar) ? keyValue : unknownValue();
  const std::string_view text = key.view();
  if (is(first, ValueKind::Unknown) && text.size() >= 2 && text.front() == '[' && !startsWith(text, "[#("))
    first = scalarValue(text[1] == '#' ? intTerm(std::strtoll(text.data() + 2, nullptr, 10))
                                       : textTerm(text.substr(1, text.size() - 2)));
  return recordValue("std::pair", {{"first", first}, {"key", first}, {"second", value}, {"value", value}});
}

} // namespace devicetidy
