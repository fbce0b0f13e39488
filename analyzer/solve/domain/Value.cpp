#include "analyzer/solve/domain/Value.h"

#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/Ends.h"
#include "analyzer/solve/domain/Hashing.h"
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/TermOps.h"

#include <algorithm>
#include <deque>
#include <unordered_set>

namespace devicetidy {
namespace {

std::uint64_t pathHash(Path path) { return path ? path->hash : 3; }

struct PathHash {
  std::size_t operator()(Path node) const { return node->hash; }
};
struct SamePath {
  bool operator()(Path a, Path b) const {
    return a->parent == b->parent && a->field == b->field && a->index == b->index;
  }
};

Path internPath(PathNode node) {
  thread_local std::deque<PathNode> nodes;
  thread_local std::unordered_set<Path, PathHash, SamePath> table;
  node.hash = mix(pathHash(node.parent), node.index ? node.index->hash : textHash(node.field));
  if (auto found = table.find(&node); found != table.end())
    return *found;
  node.marks = (node.parent ? node.parent->marks : 0) | (node.index ? node.index->marks : 0);
  nodes.push_back(node);
  return *table.insert(&nodes.back()).first;
}

// The scalars' own identity is left out of the second hash; everything that can hold a device is in both.
void computeHashes(ValueData &data) {
  std::uint64_t common = static_cast<std::uint64_t>(data.kind) + 17;
  common = mix(common, (data.hasDevice ? 2 : 0) + (data.pinned ? 1 : 0) +
                           (static_cast<std::uint64_t>(data.rank + 8) << 4));
  common = mix(common, data.placement.hash());
  common = mix(common, mix(data.address.root, pathHash(data.address.path)));
  common = mix(common, textHash(data.type));
  common = mix(common, textHash(data.function));
  common = mix(common, data.origin ? data.origin->hash : 0);
  std::uint64_t full =
      mix(common, (data.term ? data.term->hash : 0) + static_cast<std::uint64_t>(data.count));
  const bool isText = data.term && data.term->kind == TermKind::Text;
  std::uint64_t place = mix(common, isText ? data.term->hash : 1);
  for (const auto &[name, field] : data.fields) {
    full = mix(full, mix(textHash(name), field->hash));
    place = mix(place, mix(textHash(name), field->placeHash));
  }
  for (const auto *list : {&data.elements, &data.summary}) {
    full = mix(full, list->size() + 101);
    place = mix(place, list->size() + 101);
    for (const Value &element : *list) {
      full = mix(full, element->hash);
      place = mix(place, element->placeHash);
    }
  }
  data.hash = full;
  data.placeHash = place;
}

// Of parts that hold the same, one counts.
void computeDeviceHash(ValueData &data) {
  const bool isPlaced = data.kind == ValueKind::Tensor || data.kind == ValueKind::Device ||
                        (data.kind == ValueKind::Options && data.hasDevice);
  std::uint64_t own = isPlaced ? mix(mix(static_cast<std::uint64_t>(data.kind) + 17, data.placement.hash()),
                                     mix(data.address.root, pathHash(data.address.path)))
                               : 0;
  for (const auto &[name, field] : data.fields)
    if (field->deviceHash)
      own += mix(textHash(name), field->deviceHash);
  std::uint64_t last = 0;
  for (const auto *list : {&data.elements, &data.summary})
    for (const Value &element : *list)
      if (const std::uint64_t next = element->deviceHash; next && next != last)
        own += mix(101, last = next);
  data.deviceHash = own;
}

void computeMarks(ValueData &data) {
  std::uint64_t all = data.address.valid() ? marks::address : 0;
  if (data.kind == ValueKind::Function)
    all |= marks::callable;
  if (data.kind == ValueKind::List && data.term)
    all |= marks::iteration;
  for (Term term : {data.term, data.placement.index, data.origin})
    all |= term ? term->marks : 0;
  all |= data.address.path ? data.address.path->marks : 0;
  for (const auto &[name, field] : data.fields)
    all |= field->marks;
  for (const auto *list : {&data.elements, &data.summary})
    for (const Value &element : *list)
      all |= element->marks;
  data.marks = all;
}

} // namespace

Path fieldPath(Path parent, Name field) { return internPath({parent, field}); }
Path elementPath(Path parent, Term index) { return internPath({parent, {}, index}); }
Path appendPath(Path prefix, Path suffix) {
  if (!suffix)
    return prefix;
  Path parent = appendPath(prefix, suffix->parent);
  return suffix->index ? elementPath(parent, suffix->index) : fieldPath(parent, suffix->field);
}

Value makeValue(ValueData data) {
  computeHashes(data);
  computeDeviceHash(data);
  computeMarks(data);
  return std::make_shared<const ValueData>(std::move(data));
}

Value unknownValue() {
  thread_local const Value value = makeValue({});
  return value;
}
Value openValue(Term origin, Name text, int rank, Name holds) {
  ValueData data;
  data.type = holds;
  data.rank = rank;
  data.origin = origin;
  data.function = text;
  return makeValue(std::move(data));
}

Value withIdentity(Term identity) {
  ValueData data;
  data.term = identity;
  return makeValue(std::move(data));
}

Value somePartOf(const Address &object, Term name) {
  ValueData data;
  data.address = object;
  data.term = name;
  return makeValue(std::move(data));
}

bool isSomePart(const Value &value) { return value->kind == ValueKind::Unknown && value->address.valid(); }

Value nullValue() {
  thread_local const Value value = [] {
    ValueData data;
    data.kind = ValueKind::Null;
    return makeValue(std::move(data));
  }();
  return value;
}

Value scalarValue(Term term) {
  ValueData data;
  data.kind = ValueKind::Scalar;
  data.term = term;
  return makeValue(std::move(data));
}

Value deviceValue(Placement placement, History history) {
  ValueData data;
  data.kind = ValueKind::Device;
  data.placement = placement;
  data.history = std::move(history);
  return makeValue(std::move(data));
}

Value optionsValue(const Placement *placement, History history, bool pinned) {
  ValueData data;
  data.kind = ValueKind::Options;
  data.pinned = pinned;
  data.hasDevice = placement != nullptr;
  if (placement)
    data.placement = *placement;
  data.history = std::move(history);
  return makeValue(std::move(data));
}

Value tensorValue(Placement placement, int rank, History history, std::int64_t count) {
  ValueData data;
  data.kind = ValueKind::Tensor;
  data.placement = placement;
  data.rank = rank;
  data.count = count;
  data.history = std::move(history);
  return makeValue(std::move(data));
}

Value parameterHandle(Address cell, int rank) {
  ValueData data;
  data.kind = ValueKind::Tensor;
  data.address = cell;
  data.rank = rank;
  return makeValue(std::move(data));
}

Value addressValue(Address address) {
  ValueData data;
  data.kind = ValueKind::Address;
  data.address = address;
  return makeValue(std::move(data));
}

Value recordValue(Name type, std::map<Name, Value> fields, Term origin) {
  ValueData data;
  data.kind = ValueKind::Record;
  data.type = type;
  data.fields = std::move(fields);
  data.origin = origin;
  return makeValue(std::move(data));
}

Value listValue(Name type, std::vector<Value> elements) {
  ValueData data;
  data.kind = ValueKind::List;
  data.type = type;
  data.elements = std::move(elements);
  return makeValue(std::move(data));
}

Value summaryList(Name type, std::vector<Value> alternatives, std::size_t limit) {
  std::vector<Value> distinct;
  for (Value &value : alternatives)
    if (std::none_of(distinct.begin(), distinct.end(),
                     [&](const Value &other) { return same(value, other); }))
      distinct.push_back(std::move(value));
  if (distinct.empty() || !isWithin(distinct.size(), limit, Bound::AlternativesOfList))
    distinct = {unknownValue()};
  ValueData data;
  data.kind = ValueKind::List;
  data.type = type;
  data.summary = std::move(distinct);
  return makeValue(std::move(data));
}

Value functionValue(Name function, std::map<Name, Value> captures) {
  ValueData data;
  data.kind = ValueKind::Function;
  data.function = function;
  data.fields = std::move(captures);
  return makeValue(std::move(data));
}

Value libraryFunction(Name name) {
  ValueData data;
  data.kind = ValueKind::Function;
  data.type = name;
  return makeValue(std::move(data));
}

Value withField(const Value &record, Name field, Value value) {
  ValueData data = *record;
  data.fields[field] = std::move(value);
  return makeValue(std::move(data));
}

Value withHistory(const Value &value, History history) {
  ValueData data = *value;
  data.history = std::move(history);
  return std::make_shared<const ValueData>(std::move(data));
}

namespace {

// Rebuilds a value bottom-up; returns the same pointer when nothing changed so that sharing survives.
Value rebuild(const Value &value, const std::function<bool(ValueData &)> &changeOwn,
              const std::function<Value(const Value &)> &changeChild) {
  ValueData data = *value;
  bool changed = changeOwn(data);
  for (auto &[name, field] : data.fields) {
    Value next = changeChild(field);
    changed |= next != field;
    field = std::move(next);
  }
  for (auto *list : {&data.elements, &data.summary})
    for (Value &element : *list) {
      Value next = changeChild(element);
      changed |= next != element;
      element = std::move(next);
    }
  return changed ? makeValue(std::move(data)) : value;
}

Path rewritePath(Path path, const TermRewrite &rewrite) {
  if (!path)
    return nullptr;
  Path parent = rewritePath(path->parent, rewrite);
  Term index = path->index ? rewrite(path->index) : nullptr;
  if (parent == path->parent && index == path->index)
    return path;
  return index ? elementPath(parent, index) : fieldPath(parent, path->field);
}

bool isInPath(Path path, Term part) {
  return path && marks::include(path->marks, part->marks) &&
         ((path->index && contains(path->index, part)) || isInPath(path->parent, part));
}

bool rewriteOwnTerms(ValueData &data, const TermRewrite &rewrite) {
  bool changed = false;
  auto apply = [&](Term &term) {
    if (!term)
      return;
    Term next = rewrite(term);
    changed |= next != term;
    term = next;
  };
  apply(data.term);
  apply(data.placement.index);
  apply(data.origin);
  Path path = rewritePath(data.address.path, rewrite);
  changed |= path != data.address.path;
  data.address.path = path;
  return changed;
}

} // namespace

bool mentions(const Value &value, Term part) {
  if (!marks::include(value->marks, part->marks))
    return false;
  const auto isInTerm = [&](Term term) { return term && contains(term, part); };
  const auto isIn = [&](const auto &values) {
    return std::any_of(values.begin(), values.end(),
                       [&](const Value &child) { return mentions(child, part); });
  };
  return isInTerm(value->term) || isInTerm(value->placement.index) || isInTerm(value->origin) ||
         isInPath(value->address.path, part) || isIn(value->elements) || isIn(value->summary) ||
         std::any_of(value->fields.begin(), value->fields.end(),
                     [&](const auto &field) { return mentions(field.second, part); });
}

Value rewriteTerms(const Value &value, const TermRewrite &rewrite, std::uint64_t wanted) {
  if (!marks::include(value->marks, wanted))
    return value;
  return rebuild(
      value, [&](ValueData &data) { return rewriteOwnTerms(data, rewrite); },
      [&](const Value &child) { return rewriteTerms(child, rewrite, wanted); });
}

Value rewriteScalars(const Value &value, const TermRewrite &rewrite, std::uint64_t wanted) {
  if (!marks::include(value->marks, wanted))
    return value;
  return rebuild(
      value,
      [&](ValueData &data) {
        const bool isTold =
            data.kind == ValueKind::Scalar || (data.kind == ValueKind::Unknown && !data.origin);
        const Term next = isTold && data.term ? rewrite(data.term) : data.term;
        const bool isChanged = next != data.term;
        data.term = next;
        return isChanged;
      },
      [&](const Value &child) { return rewriteScalars(child, rewrite, wanted); });
}

Value substitute(const Value &value, Term from, Term to) {
  return rewriteTerms(value, [&](Term term) { return substitute(term, from, to); }, from->marks);
}

Value rewriteAddresses(const Value &value, const AddressRewrite &rewrite) {
  if (!marks::include(value->marks, marks::address))
    return value;
  return rebuild(
      value,
      [&](ValueData &data) {
        if (!data.address.valid())
          return false;
        Address next = rewrite(data.address);
        bool changed = !(next == data.address);
        data.address = next;
        return changed;
      },
      [&](const Value &child) { return rewriteAddresses(child, rewrite); });
}

void forEachAddress(const Value &value, const std::function<void(const Address &)> &visit) {
  if (!marks::include(value->marks, marks::address))
    return;
  if (value->address.valid())
    visit(value->address);
  for (const auto &[name, field] : value->fields)
    forEachAddress(field, visit);
  for (const auto *list : {&value->elements, &value->summary})
    for (const Value &element : *list)
      forEachAddress(element, visit);
}

Value withElementOfIteration(const Value &old, Value element, Term iteration) {
  std::vector<Value> alternatives;
  for (const Value &other : old->summary)
    if (!same(other, element))
      alternatives.push_back(other);
  alternatives.push_back(std::move(element));
  ValueData list = *summaryList(old->type, std::move(alternatives));
  list.term = iteration;
  return makeValue(std::move(list));
}

Term previousIteration(Term iteration) { return applyTerm(op::previous, {iteration}); }

Value endIterations(const Value &value) {
  if (!marks::include(value->marks, marks::iteration))
    return value;
  return rebuild(
      value,
      [](ValueData &data) {
        const bool marked = data.kind == ValueKind::List && data.term;
        if (marked)
          data.term = nullptr;
        return marked;
      },
      [](const Value &child) { return endIterations(child); });
}

// An element pushed in iteration i of a loop, and the one pushed in the iteration before, are one function of
// the index.
Value generalise(const Value &value) {
  if (!marks::include(value->marks, marks::of(op::previous)) &&
      !marks::include(value->marks, marks::of(op::loop)))
    return value;
  std::function<Term(Term)> rewrite = [&](Term term) -> Term {
    if (term->kind == TermKind::Apply && (term->name == op::previous || term->name == op::loop))
      return elementIndex();
    if (term->args.empty())
      return term;
    std::vector<Term> args;
    for (Term arg : term->args)
      args.push_back(rewrite(arg));
    return args == term->args ? term : applyTerm(term->name, std::move(args));
  };
  return rewriteTerms(value, rewrite, 0);
}

} // namespace devicetidy
