#include "analyzer/solve/domain/Ends.h"

#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/TermOps.h"

#include <algorithm>

namespace devicetidy {
namespace {

std::vector<Value> partOf(const Value &list, Name part) {
  const auto found = list->fields.find(part);
  return found == list->fields.end() ? std::vector<Value>() : found->second->elements;
}

Value withPart(const Value &list, Name part, std::vector<Value> elements) {
  return withField(list, part, listValue({}, std::move(elements)));
}

bool mayBeAnything(const Value &list) {
  for (const Value &any : list->summary)
    if (is(any, ValueKind::Unknown))
      return true;
  return false;
}

// `list` with `element` among what any of its elements may be.
Value covering(const Value &list, const Value &element, Name type,
               std::size_t limit = bounds::listAlternatives) {
  if (!is(list, ValueKind::List))
    return summaryList(type, {unknownValue()});
  if (mayBeAnything(list))
    return list;
  ValueData data = *list;
  data.summary.push_back(element);
  Value grown = summaryList(data.type, data.summary, limit);
  for (const auto &[name, field] : list->fields)
    grown = withField(grown, name, field);
  return grown;
}

bool isSizeOf(Term term, const Value &list) {
  return term->kind == TermKind::Apply && term->name == op::size && term->args.size() == 3 &&
         constantOf(term->args[2]) == static_cast<std::int64_t>(knownAtBegin(list) + knownAtEnd(list));
}

// Which of the known elements, and in which part.
struct Slot {
  Name part;
  std::size_t number;
};

std::optional<Slot> slotOf(const Value &list, Term index) {
  if (const auto number = constantOf(index);
      number && *number >= 0 && *number < static_cast<std::int64_t>(knownAtBegin(list)))
    return Slot{hidden::head, static_cast<std::size_t>(*number)};
  const auto count = static_cast<std::int64_t>(knownAtEnd(list));
  if (const auto number = numberFromEnd(index, list); number && *number >= 1 && *number <= count)
    return Slot{hidden::tail, static_cast<std::size_t>(count - *number)};
  return std::nullopt;
}

} // namespace

std::size_t knownAtBegin(const Value &list) { return partOf(list, hidden::head).size(); }
std::size_t knownAtEnd(const Value &list) { return partOf(list, hidden::tail).size(); }

Value withLast(const Value &list, Name type, Value element, std::size_t limit) {
  std::vector<Value> tail = partOf(list, hidden::tail);
  if (!isWithin(tail.size() + 1, bounds::knownElements, Bound::ElementsOfList))
    tail.erase(tail.begin());
  tail.push_back(element);
  return withPart(covering(list, element, type, limit), hidden::tail, std::move(tail));
}

Value prepended(const Value &list, Value element) {
  std::vector<Value> head = partOf(list, hidden::head);
  head.insert(head.begin(), element);
  if (!isWithin(head.size(), bounds::knownElements, Bound::ElementsOfList))
    head.pop_back();
  return withPart(covering(list, element, list->type), hidden::head, std::move(head));
}

Value withSome(const Value &list, Term at, const Value &value) {
  if (!is(list, ValueKind::List))
    return unknownValue();
  const bool isKnown = !isSummary(list);
  std::vector<Value> head = isKnown ? list->elements : partOf(list, hidden::head);
  std::vector<Value> tail = isKnown ? list->elements : partOf(list, hidden::tail);
  const auto number = constantOf(at);
  const auto fromEnd =
      isKnown && number ? static_cast<std::int64_t>(tail.size()) - *number : numberFromEnd(at, list);
  if (!number && !fromEnd)
    return unknownValue();
  if (fromEnd == 0)
    return withSomeLast(list, value);
  // Elements in front of `at` count from the begin, those behind it from the end.
  if (number && *number < static_cast<std::int64_t>(head.size()))
    head.resize(static_cast<std::size_t>(std::max<std::int64_t>(*number, 0)));
  if (fromEnd && *fromEnd < static_cast<std::int64_t>(tail.size()))
    tail.erase(tail.begin(), tail.end() - std::max<std::int64_t>(*fromEnd, 0));
  const std::vector<Value> &all = isKnown ? list->elements : list->summary;
  const bool areAlike =
      std::all_of(all.begin(), all.end(), [&](const Value &each) { return same(each, value); });
  const Value grown = summaryList(list->type, {areAlike ? value : unknownValue()});
  return withPart(withPart(grown, hidden::head, std::move(head)), hidden::tail, std::move(tail));
}

Value withSomeLast(const Value &list, const Value &value, std::size_t limit) {
  std::vector<Value> head, all;
  Name type;
  if (is(list, ValueKind::List)) {
    head = isSummary(list) ? partOf(list, hidden::head) : list->elements;
    all = isSummary(list) ? list->summary : list->elements;
    type = list->type;
  }
  all.push_back(value);
  return withPart(summaryList(type, std::move(all), limit), hidden::head, std::move(head));
}

Value withCommonEnds(const Value &a, const Value &b, const Value &joined) {
  const auto beginOf = [](const Value &list) {
    return isSummary(list) ? partOf(list, hidden::head) : list->elements;
  };
  const auto endOf = [](const Value &list) {
    return isSummary(list) ? partOf(list, hidden::tail) : list->elements;
  };
  const auto isSameObject = [](const Value &left, const Value &right) {
    return is(left, ValueKind::Address) && same(left, right);
  };
  std::vector<Value> head = beginOf(a), tail = endOf(a);
  const std::vector<Value> otherHead = beginOf(b), otherTail = endOf(b);
  head.erase(std::mismatch(head.begin(), head.end(), otherHead.begin(), otherHead.end(), isSameObject).first,
             head.end());
  // An element of a list of known length is at one of its ends only.
  std::size_t most = otherTail.size();
  for (const Value &list : {a, b})
    if (!isSummary(list))
      most = std::min(most, list->elements.size() - head.size());
  const auto shared =
      std::mismatch(tail.rbegin(), tail.rend(), otherTail.rbegin(), otherTail.rend(), isSameObject);
  most = std::min(most, static_cast<std::size_t>(shared.first - tail.rbegin()));
  tail.erase(tail.begin(), tail.end() - static_cast<std::ptrdiff_t>(most));
  return head.empty() && tail.empty()
             ? joined
             : withPart(withPart(joined, hidden::head, std::move(head)), hidden::tail, std::move(tail));
}

ListParts partsOf(const Value &list) {
  if (!isSummary(list))
    return {list->elements, {}, {}};
  ListParts parts{partOf(list, hidden::head), {}, partOf(list, hidden::tail)};
  const auto isAmong = [](const std::vector<Value> &known, const Value &value) {
    return std::any_of(known.begin(), known.end(), [&](const Value &each) { return same(each, value); });
  };
  for (const Value &each : list->summary)
    if (!isAmong(parts.begin, each) && !isAmong(parts.end, each))
      parts.between.push_back(each);
  return parts;
}

Value withoutEnd(const Value &list, Term number, std::optional<std::int64_t> count) {
  const auto slot = number && count == 1 && is(list, ValueKind::List) && isSummary(list)
                        ? slotOf(list, number)
                        : std::nullopt;
  if (!slot)
    return nullptr;
  std::vector<Value> elements = partOf(list, slot->part);
  elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(slot->number));
  return withPart(list, slot->part, std::move(elements));
}

std::optional<std::int64_t> numberFromEnd(Term index, const Value &list) {
  if (index->kind != TermKind::Apply)
    return std::nullopt;
  if (index->name == op::back && index->args.size() == 1 && isSizeOf(index->args[0], list))
    return 1;
  if (isSizeOf(index, list))
    return 0;
  if (index->args.size() != 2)
    return std::nullopt;
  const auto left = constantOf(index->args[0]), right = constantOf(index->args[1]);
  if (index->name == op::minus && right && isSizeOf(index->args[0], list))
    return *right;
  if (index->name == op::plus && right && isSizeOf(index->args[0], list))
    return -*right;
  if (index->name == op::plus && left && isSizeOf(index->args[1], list))
    return -*left;
  return std::nullopt;
}

Value elementOfEnds(const Value &list, Term index) {
  const auto slot = slotOf(list, index);
  return slot ? partOf(list, slot->part)[slot->number] : nullptr;
}

Value withElementOfEnds(const Value &list, Term index, const Value &element) {
  const auto slot = slotOf(list, index);
  if (!slot)
    return nullptr;
  std::vector<Value> elements = partOf(list, slot->part);
  elements[slot->number] = element;
  return withPart(covering(list, element, list->type), slot->part, std::move(elements));
}

} // namespace devicetidy
