//===- Primitives.cpp - what model bodies ask of values and sequences ---===//
//
// The functions of analyzer/models/bodies/dt.h. Each does nothing but forget what it may change where it is
// given something that is not known.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/Ends.h"
#include "analyzer/solve/domain/Positions.h"
#include "analyzer/solve/engine/ModelBodies.h"
#include "analyzer/solve/library/std/Containers.h"
#include "analyzer/solve/library/std/Iterators.h"
#include "analyzer/solve/library/std/Views.h"
#include "analyzer/solve/library/std/Words.h"

#include <algorithm>

namespace devicetidy {
namespace {

bool isKnownList(const Value &value) { return is(value, ValueKind::List) && !isSummary(value); }

Term numberArg(const Call &call, std::size_t i) {
  const Value value = call.arg(i);
  return is(value, ValueKind::Scalar) ? call.row.resolve(value->term) : nullptr;
}

std::optional<std::int64_t> constantArg(const Call &call, std::size_t i) {
  return call.row.numberOf(call.arg(i));
}

Outcomes truth(const Call &call, bool value) { return call.done(scalarValue(intTerm(value))); }

const Name initializerList("std::initializer_list"), firstField("first"), secondField("second"),
    entryField("entry");

// `list` with other elements; what else is kept with it stays.
Value withElements(const Value &list, std::vector<Value> elements) {
  ValueData data = *list;
  data.elements = std::move(elements);
  return makeValue(std::move(data));
}

// An unknown number, the same one when the same thing is asked again.
Value unknownNumber(const Call &call) { return scalarValue(call.machine.freshScalar(call)); }

void forgetPlace(Call &call, std::size_t i) {
  call.machine.memory.write(call.row, call.addressOf(i), unknownValue());
}

// Everything that leads into a sequence goes where the elements have gone.
void redirect(Row &row, const AddressRewrite &rewrite) {
  std::vector<std::pair<RootId, Value>> changed;
  row.store.forEach(
      [&](RootId root, const Value &value) {
        Value next = rewriteAddresses(value, rewrite);
        if (!same(next, value))
          changed.emplace_back(root, std::move(next));
      },
      marks::address);
  for (auto &[root, value] : changed)
    row.store.set(root, std::move(value));
}

Outcomes sizeOf(Call &call) {
  const Value list = call.arg(0);
  if (!is(list, ValueKind::List))
    return call.done(unknownNumber(call));
  return call.done(scalarValue(call.row.resolve(sizeTerm(list, call.addressOf(0)))));
}

Outcomes elementOf(Call &call) {
  const Term number = numberArg(call, 1);
  return number ? elementAt(call, call.addressOf(0), call.arg(0), number) : call.done(unknownValue());
}

Outcomes insertElement(Call &call) {
  const Address where = call.addressOf(0);
  const Value list = call.arg(0);
  const auto at = constantArg(call, 1);
  if (at == 0 &&
      !isKnownList(list)) { // all that leads to elements is off by one then, by how much is not known
    redirect(call.row, [&](const Address &address) { return shifted(address, where, 0, -(1LL << 40)); });
    call.machine.memory.write(call.row, where, prepended(list, call.arg(2)));
    return call.done(unknownValue());
  }
  if (numberArg(call, 1) && !isKnownList(list) && numberFromEnd(numberArg(call, 1), list) == 0) {
    call.machine.memory.write(call.row, where, appended(call, list, list->type, call.arg(2)));
    return call.done(unknownValue());
  }
  if (!isKnownList(list) || !at || *at < 0 || *at > static_cast<std::int64_t>(list->elements.size()) ||
      !canListElements(list->elements.size() + 1)) {
    // Where the others stand now is not known, and neither is what leads to them.
    const Value next = is(list, ValueKind::List)
                           ? inAnyOrder(appended(call, inAnyOrder(list), list->type, call.arg(2)))
                           : unknownValue();
    redirect(call.row, [&](const Address &address) { return shifted(address, where, -1, -(1LL << 40)); });
    call.machine.memory.write(call.row, where, next);
    return call.done(unknownValue());
  }
  std::vector<Value> elements = list->elements;
  elements.insert(elements.begin() + static_cast<std::ptrdiff_t>(*at), call.arg(2));
  redirect(call.row, [&](const Address &address) { return shifted(address, where, *at, 1); });
  call.machine.memory.write(call.row, where, withElements(list, std::move(elements)));
  return call.done(unknownValue());
}

Outcomes insertSome(Call &call) {
  const Address where = call.addressOf(0);
  const Term at = numberArg(call, 1);
  const Value next = at ? withSome(call.arg(0), at, call.arg(2)) : unknownValue();
  redirect(call.row, [&](const Address &address) { return shifted(address, where, -1, -(1LL << 40)); });
  call.machine.memory.write(call.row, where, next);
  return call.done(unknownValue());
}

// Do `count` elements from the first one on make the whole list, whose length is not known?
bool isWhole(Call &call, Term count) {
  const Value list = call.arg(0);
  if (is(list, ValueKind::List))
    return numberFromEnd(count, list) == 0;
  Fact fact = call.fact; // what the same list has answered when it was asked for its size
  fact.name = "dt::size";
  fact.operands.resize(call.first + 1);
  Call size{call.machine, call.frame, call.row, fact, call.first};
  return count == call.machine.freshScalar(size);
}

Outcomes eraseElements(Call &call) {
  const Address where = call.addressOf(0);
  const Value list = call.arg(0);
  const auto at = constantArg(call, 1), count = constantArg(call, 2);
  if (count == 0)
    return call.done(unknownValue());
  if (!count && at == 0 && numberArg(call, 2) && isWhole(call, numberArg(call, 2))) {
    redirect(call.row, [&](const Address &address) { return shifted(address, where, -1, -(1LL << 40)); });
    call.machine.memory.write(call.row, where, listValue(list->type, {}));
    return call.done(unknownValue());
  }
  if (const Value rest = withoutEnd(list, numberArg(call, 1), count)) {
    call.machine.memory.write(call.row, where, rest);
    return call.done(unknownValue());
  }
  if (!isKnownList(list) || !at || !count || *at < 0 || *count < 0 ||
      *at + *count > static_cast<std::int64_t>(list->elements.size())) {
    redirect(call.row, [&](const Address &address) { return shifted(address, where, -1, -(1LL << 40)); });
    Value next = unknownValue();
    if (is(list, ValueKind::List) && !list->elements.empty() && !isSummary(list))
      next = summaryList(list->type, {anyOf(list->elements)});
    else if (is(list, ValueKind::List))
      next = inAnyOrder(list);
    call.machine.memory.write(call.row, where, next);
    return call.done(unknownValue());
  }
  std::vector<Value> elements = list->elements;
  const auto first = elements.begin() + static_cast<std::ptrdiff_t>(*at);
  elements.erase(first, first + static_cast<std::ptrdiff_t>(*count));
  redirect(call.row, [&](const Address &address) { return shifted(address, where, *at, -*count); });
  call.machine.memory.write(call.row, where, withElements(list, std::move(elements)));
  return call.done(unknownValue());
}

// Element `number` of one list goes in front of element `to` of another, or of the same.
Outcomes moveElement(Call &call) {
  const Address from = call.addressOf(0), into = call.addressOf(2);
  const Value source = call.arg(0), target = call.arg(2);
  const auto number = constantArg(call, 1);
  auto to = constantArg(call, 3);
  const bool isKnown = isKnownList(source) && isKnownList(target) && number && to && *number >= 0 &&
                       *number < static_cast<std::int64_t>(source->elements.size()) && *to >= 0 &&
                       *to <= static_cast<std::int64_t>(target->elements.size()) &&
                       canListElements(target->elements.size() + 1);
  if (!isKnown) {
    forgetPlace(call, 0);
    forgetPlace(call, 2);
    return call.done(unknownValue());
  }
  if (from == into && *to > *number)
    --*to;
  const Address before = from.element(intTerm(*number)), after = into.element(intTerm(*to));
  auto follow = [&](const Address &address) {
    if (leadsThrough(address, before))
      return moveBelow(address, before, after);
    return shifted(shifted(address, from, *number, -1), into, *to, 1);
  };
  redirect(call.row, follow);
  std::vector<Value> rest = source->elements;
  const Value moving = rewriteAddresses(rest[static_cast<std::size_t>(*number)], follow);
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(*number));
  call.machine.memory.write(call.row, from, withElements(source, rest));
  std::vector<Value> grown = from == into ? rest : target->elements;
  grown.insert(grown.begin() + static_cast<std::ptrdiff_t>(*to), moving);
  call.machine.memory.write(call.row, into, withElements(target, std::move(grown)));
  return call.done(unknownValue());
}

// Any element of a range: what they share.
Outcomes anyBetween(Call &call) {
  const Value first = asPosition(call.machine.memory, call.row, call.arg(0));
  const Value list =
      isPosition(first) ? call.machine.memory.read(call.row, sequenceOf(first->address)) : unknownValue();
  const auto from = ordinalOf(call.machine, call.row, first),
             to = ordinalOf(call.machine, call.row, asPosition(call.machine.memory, call.row, call.arg(1)));
  if (!is(list, ValueKind::List))
    return call.done(unknownValue());
  if (isSummary(list))
    return call.done(anyOf(list->summary));
  if (!from || !to || *from < 0 || *from > *to || *to > static_cast<std::int64_t>(list->elements.size()))
    return call.done(anyOf(list->elements));
  return call.done(anyOf({list->elements.begin() + static_cast<std::ptrdiff_t>(*from),
                          list->elements.begin() + static_cast<std::ptrdiff_t>(*to)}));
}

// The elements of a range are in an order that is not known: each may be any of them.
Outcomes shuffleRange(Call &call) {
  const Value first = asPosition(call.machine.memory, call.row, call.arg(0));
  const Value last = asPosition(call.machine.memory, call.row, call.arg(1));
  if (!isPosition(first))
    return call.done(unknownValue());
  const Address where = sequenceOf(first->address);
  const Value list = call.machine.memory.read(call.row, where);
  const auto from = ordinalOf(call.machine, call.row, first), to = ordinalOf(call.machine, call.row, last);
  if (!isKnownList(list) || !from || !to || *from < 0 || *from > *to ||
      *to > static_cast<std::int64_t>(list->elements.size())) {
    call.machine.memory.write(call.row, where, inAnyOrder(list));
    return call.done(unknownValue());
  }
  std::vector<Value> elements = list->elements;
  const auto begin = elements.begin() + static_cast<std::ptrdiff_t>(*from),
             end = elements.begin() + static_cast<std::ptrdiff_t>(*to);
  if (end - begin > 1)
    std::fill(begin, end, anyOf(std::vector<Value>(begin, end)));
  call.machine.memory.write(call.row, where, withElements(list, std::move(elements)));
  return call.done(unknownValue());
}

Outcomes swapContents(Call &call) {
  const Address a = call.addressOf(0), b = call.addressOf(1);
  if (!a.valid() || !b.valid()) {
    forgetPlace(call, 0);
    forgetPlace(call, 1);
    return call.done(unknownValue());
  }
  if (a == b)
    return call.done(unknownValue());
  const Value ofA = call.machine.memory.read(call.row, a), ofB = call.machine.memory.read(call.row, b);
  // What leads to elements goes with them; what leads to the containers themselves stays.
  redirect(call.row, [&](const Address &address) {
    if (address == a || address == b)
      return address;
    return leadsThrough(address, a) ? moveBelow(address, a, b) : moveBelow(address, b, a);
  });
  auto follow = [&](const Value &value) {
    return rewriteAddresses(value, [&](const Address &address) {
      if (address == a || address == b)
        return address;
      return leadsThrough(address, a) ? moveBelow(address, a, b) : moveBelow(address, b, a);
    });
  };
  call.machine.memory.write(call.row, a, follow(ofB));
  call.machine.memory.write(call.row, b, follow(ofA));
  return call.done(unknownValue());
}

} // namespace

Words sequenceWords() {
  return {
      {},
      {
          {"either",
           [](Call &call) {
             const Address copy = call.machine.allocate(call.row, call.frame, call.fact, {});
             call.machine.memory.write(call.row, copy, anyOf({call.arg(0), call.arg(1)}));
             return call.done(addressValue(copy));
           }},
          {"is_container",
           [](Call &call) {
             const Value value = call.arg(0);
             return truth(call, is(value, ValueKind::List) ||
                                    (is(value, ValueKind::Record) &&
                                     call.machine.types.classOf(value->type) == TypeClass::Map));
           }},
          {"is_braced",
           [](Call &call) {
             return truth(call, call.machine.types.templateOf(call.arg(0)->type) == initializerList);
           }},
          {"is_certain", [](Call &call) { return truth(call, constantArg(call, 0).has_value()); }},
          {"set_empty",
           [](Call &call) {
             const Value list = call.arg(0);
             ValueData data = *list;
             if (!is(list, ValueKind::List))
               data = ValueData();
             data.kind = ValueKind::List;
             data.elements.clear();
             data.summary.clear();
             data.term = data.origin = nullptr;
             data.fields.erase(hidden::head);
             data.fields.erase(hidden::tail);
             call.machine.memory.write(call.row, call.addressOf(0), makeValue(std::move(data)));
             return call.done(unknownValue());
           }},
          {"move_element", moveElement},
          {"method",
           [](Call &call) {
             const Value name = call.arg(1);
             const auto text = is(name, ValueKind::Scalar) ? textOf(name->term) : std::nullopt;
             return text && call.addressOf(0).valid() ? callMethod(call, call.addressOf(0), text->view(), {})
                                                      : call.done(unknownValue());
           }},
          {"pair",
           [](Call &call) {
             return call.done(
                 recordValue("std::pair", {{firstField, call.arg(0)}, {secondField, call.arg(1)}}));
           }},
          {"make_node",
           [](Call &call) { return call.done(recordValue(nodeType, {{entryField, call.arg(0)}})); }},
          {"node_entry",
           [](Call &call) { return call.done(addressValue(call.addressOf(0).field(entryField))); }},
          {"node_result",
           [](Call &call) {
             return call.done(
                 recordValue("dt::node_result",
                             {{"position", call.arg(0)}, {"inserted", call.arg(1)}, {"node", call.arg(2)}}));
           }},
          {"first", [](Call &call) { return call.done(addressValue(call.addressOf(0).field(firstField))); }},
          {"second",
           [](Call &call) { return call.done(addressValue(call.addressOf(0).field(secondField))); }},
          {"truth", [](Call &call) { return call.done(call.arg(0)); }},
          {"count", [](Call &call) { return call.done(call.arg(0)); }},
          {"unknown_truth",
           [](Call &call) { return call.done(scalarValue(guess(call.machine.freshScalar(call)))); }},
          {"address", [](Call &call) { return call.done(addressValue(call.addressOf(0))); }},
          {"view",
           [](Call &call) {
             const Value first = asPosition(call.machine.memory, call.row, call.arg(1));
             const Term count = numberArg(call, 2);
             return call.done(count ? viewOf(call.arg(0)->type, first, count) : unknownValue());
           }},
          {"is_view", [](Call &call) { return truth(call, isView(call.arg(0))); }},
          {"view_begin",
           [](Call &call) {
             const Value view = call.arg(0);
             return call.done(
                 addressValue(isView(view) ? beginOf(view) : call.addressOf(0).element(intTerm(0))));
           }},
          {"view_size",
           [](Call &call) {
             return isView(call.arg(0)) ? call.done(scalarValue(countOf(call.arg(0)))) : sizeOf(call);
           }},
          {"unknown", [](Call &call) { return call.done(unknownValue()); }},
          {"null", [](Call &call) { return call.done(nullValue()); }},
          {"is_null",
           [](Call &call) {
             const Value value = call.arg(0);
             return is(value, ValueKind::Unknown) || value->origin ? call.done(unknownNumber(call))
                                                                   : truth(call, is(value, ValueKind::Null));
           }},
          {"is_list", [](Call &call) { return truth(call, is(call.arg(0), ValueKind::List)); }},
          {"is_position",
           [](Call &call) {
             return truth(call, isPosition(asPosition(call.machine.memory, call.row, call.arg(0))));
           }},
          {"is_number", [](Call &call) { return truth(call, constantArg(call, 0).has_value()); }},
          {"is_known", [](Call &call) { return truth(call, !is(call.arg(0), ValueKind::Unknown)); }},
          {"forget",
           [](Call &call) {
             forgetPlace(call, 0);
             return call.done(unknownValue());
           }},
          {"size", sizeOf},
          {"element", elementOf},
          {"empty_list", [](Call &call) { return call.done(listValue({}, {})); }},
          {"append",
           [](Call &call) {
             const Value list = call.arg(0);
             call.machine.memory.write(call.row, call.addressOf(0),
                                       appended(call, list, list->type, call.arg(1)));
             return call.done(unknownValue());
           }},
          {"insert", insertElement},
          {"insert_some", insertSome},
          {"erase", eraseElements},
          {"shuffle", shuffleRange},
          {"swap_contents", swapContents},
          {"position",
           [](Call &call) {
             const Term number = numberArg(call, 1);
             const Address list = call.addressOf(0);
             return call.done(number && list.valid() ? addressValue(list.element(number)) : unknownValue());
           }},
          {"number",
           [](Call &call) {
             const Value at = call.arg(0);
             return call.done(isPosition(at) ? scalarValue(numberAt(at->address)) : unknownNumber(call));
           }},
          {"next",
           [](Call &call) {
             const Term by = numberArg(call, 1);
             return call.done(by ? advanced(call, call.arg(0), by) : unknownValue());
           }},
          {"distance", [](Call &call) { return call.done(distanceBetween(call, call.arg(0), call.arg(1))); }},
          {"at", [](Call &call) { return standingAt(call, call.arg(0)); }},
          {"put", [](Call &call) { return putAt(call, call.arg(0), call.arg(1)); }},
          {"any_between", anyBetween},
          {"reversed", [](Call &call) { return call.done(reversed(call.arg(0))); }},
          {"inserter", [](Call &call) { return call.done(inserterAt(call.addressOf(0), call.arg(1))); }},
          {"back_inserter", [](Call &call) { return call.done(inserterAtEnd(call.addressOf(0), "back")); }},
          {"front_inserter", [](Call &call) { return call.done(inserterAtEnd(call.addressOf(0), "front")); }},
      },
      {}};
}

} // namespace devicetidy
