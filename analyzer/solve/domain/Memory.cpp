#include "analyzer/solve/domain/Memory.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/Ends.h"
#include "analyzer/solve/domain/Joins.h"
#include "analyzer/solve/domain/TermOps.h"

#include <algorithm>

namespace devicetidy {

namespace {

std::vector<Path> fromRoot(Path path) {
  std::vector<Path> nodes;
  for (; path; path = path->parent)
    nodes.push_back(path);
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

Name joinText(Name text, std::string_view separator, Name field) {
  return text.empty() ? field : Name(text.str() + std::string(separator) + field.str());
}

} // namespace

std::size_t Memory::KeyHash::operator()(const Key &key) const {
  const auto &[a, b, name] = key;
  return (a * 0x9e3779b97f4a7c15ULL + b) * 0x9e3779b97f4a7c15ULL + name.hash();
}

RootId Memory::intern(RootKind kind, const Key &key, const std::function<RootInfo()> &info) {
  std::vector<RootInfo> &known = roots[static_cast<std::size_t>(kind)];
  auto [entry, isNew] = ids[static_cast<std::size_t>(kind)].try_emplace(key, noRoot);
  if (isNew) {
    known.push_back(info());
    entry->second = makeRoot(kind, static_cast<RootId>(known.size()));
  }
  return entry->second;
}

RootId Memory::local(unsigned depth, unsigned index, const Variable &variable) {
  return intern(RootKind::Local, {depth, index, variable.type},
                [&] { return RootInfo{depth, variable.type, nullptr, variable.name}; });
}

RootId Memory::noted(unsigned depth, Name what) {
  static constexpr unsigned noVariable = ~0U;
  return intern(RootKind::Local, {depth, noVariable, what}, [&] { return RootInfo{depth, {}, nullptr, {}}; });
}

RootId Memory::heap(Term site, unsigned copy, Name type) {
  return intern(RootKind::Heap, {reinterpret_cast<std::uintptr_t>(site), copy, type},
                [&] { return RootInfo{0, type, nullptr, {}, site}; });
}

RootId Memory::global(Name id, Name type, Name text) {
  return intern(RootKind::Global, {0, 0, id}, [&] {
    return RootInfo{0,    type,    applyTerm(op::global, {textTerm(id)}),
                    text, nullptr, endsWith(id.view(), initialisedSuffix)};
  });
}

RootId Memory::outside(Term origin, Name type, Name text) {
  return intern(RootKind::Outside, {reinterpret_cast<std::uintptr_t>(origin), 0, type},
                [&] { return RootInfo{0, type, origin, text}; });
}

Value Memory::symbolic(Name type, Term origin, Name text, SymbolRole tensorRole) {
  auto event = [&](StepKind kind) {
    Step step;
    step.kind = kind;
    step.subject = text.str();
    step.device = "its own device";
    return extend(nullptr, step);
  };
  switch (types.classOf(type)) {
  case TypeClass::Tensor: {
    return tensorValue(Placement::symbol(tensorRole, origin, Name(text.str() + ".device()")), unknownRank,
                       event(StepKind::Parameter));
  }
  case TypeClass::Device:
    return deviceValue(Placement::symbol(SymbolRole::DeviceChoice, origin, text), event(StepKind::Parameter));
  case TypeClass::Options: {
    Placement placement = Placement::symbol(SymbolRole::DeviceChoice, origin, text);
    return optionsValue(&placement, event(StepKind::Parameter));
  }
  case TypeClass::Nothing:
    return nullValue();
  case TypeClass::Scalar:
  case TypeClass::String: {
    const Term number = symbolTerm(Name("v" + std::to_string(origin->hash)));
    originsOfNumbers.emplace(number, origin);
    return scalarValue(number);
  }
  case TypeClass::Pointer:
  case TypeClass::Holder: {
    Name pointee = types.inner(type);
    if (types.hasUnknownBase(pointee))
      return openValue(origin, text);
    return addressValue({outside(applyTerm(op::pointee, {origin}), pointee, text), nullptr});
  }
  case TypeClass::Optional:
  case TypeClass::Wrapper:
    return types.inner(type).empty() ? unknownValue() : symbolic(types.inner(type), origin, text, tensorRole);
  case TypeClass::Map:
    if (!applies(origin, op::parameter)) // what the program keeps in maps is not followed through them
      return symbolicList(type, origin, text, tensorRole);
    [[fallthrough]];
  case TypeClass::Record:
  case TypeClass::Pair:
  case TypeClass::Example:
  case TypeClass::Tuple: {
    ValueData data;
    data.kind = ValueKind::Record;
    data.type = type;
    data.origin = origin;
    data.function = text;
    return makeValue(std::move(data));
  }
  case TypeClass::List:
    return symbolicList(type, origin, text, tensorRole);
  case TypeClass::Function:
    return types.hasOneValue(type) ? libraryFunction(type) : unknownValue();
  default:
    if (type == numberType)
      return openValue(origin, text, 0);
    if (type == numbersType)
      return openValue(origin, text, someRank, numberType);
    if (type == moduleType || type == partType) // so are its parts
      return openValue(origin, text, unknownRank, type);
    if (startsWith(type.view(), holdsType))
      return openValue(origin, text, unknownRank, Name(type.view().substr(holdsType.size())));
    return type.empty() ? openValue(origin, text) : unknownValue();
  }
}

Value Memory::symbolicList(Name type, Term origin, Name text, SymbolRole tensorRole) {
  const Name inner = types.inner(type);
  if (inner.empty())
    return unknownValue();
  const Value each = symbolic(inner, applyTerm(op::element, {origin, elementIndex()}),
                              joinText(text, "", "[i]"), tensorRole);
  return summaryList(type, {each});
}

Term Memory::originOf(Term number) const {
  const auto known = originsOfNumbers.find(number);
  return known == originsOfNumbers.end() ? nullptr : known->second;
}

Value Memory::behind(const Row &row, const Value &handle, Name type, Name text) {
  const Name object = types.inner(type);
  if (is(handle, ValueKind::Scalar) && !constantOf(handle->term)) {
    const Term origin = originOf(handle->term);
    return symbolic(type, origin ? origin : handle->term, text);
  }
  if (!is(handle, ValueKind::Address))
    return handle;
  const RootInfo root = info(handle->address.root); // a copy: making a root moves them
  const bool isOpen = kindOf(handle->address.root) == RootKind::Outside && !handle->address.path &&
                      root.type != object && !row.store.get(handle->address.root);
  return isOpen ? addressValue({outside(root.origin, object, root.text), nullptr}) : handle;
}

Value Memory::filled(Name type, const Placement &placement, int rank, const History &history) const {
  switch (types.classOf(type)) {
  case TypeClass::Tensor:
    return tensorValue(placement, rank, history);
  case TypeClass::Optional:
  case TypeClass::Wrapper:
    return types.inner(type).empty() ? tensorValue(placement, rank, history)
                                     : filled(types.inner(type), placement, rank, history);
  case TypeClass::List:
    return summaryList(type, {filled(types.inner(type), placement, rank, history)});
  case TypeClass::Pair:
  case TypeClass::Tuple:
  case TypeClass::Example: {
    std::map<Name, Value> fields;
    const TypeClass kind = types.classOf(type);
    std::vector<Name> parts = types.parts(type);
    if (kind == TypeClass::Example && parts.empty())
      parts = {"at::Tensor", "at::Tensor"};
    for (std::size_t i = 0; i < parts.size(); ++i)
      fields[partName(kind, i)] = filled(parts[i], placement, rank, history);
    return recordValue(type, std::move(fields));
  }
  case TypeClass::Record: {
    const Type *record = types.program.type(type);
    std::map<Name, Value> fields;
    if (record)
      for (const Field &field : record->fields)
        if (types.classOf(field.type) == TypeClass::Tensor)
          fields[field.name] = tensorValue(placement, rank, history);
    return fields.empty() ? unknownValue() : recordValue(type, std::move(fields));
  }
  default:
    return unknownValue();
  }
}

namespace {

bool isSlot(const Types &types, Name type) {
  const TypeClass kind = types.classOf(type);
  return kind == TypeClass::Device || kind == TypeClass::Options || kind == TypeClass::Tensor;
}

std::string slotOf(Name type, Name field) { return type.str() + "::" + field.str(); }

} // namespace

Value Memory::rootValue(const Row &row, RootId root) const {
  if (Value stored = row.store.get(root))
    return stored;
  const RootInfo known = info(root); // a copy: making a symbol may make roots
  if (known.isFlag)
    return scalarValue(intTerm(0));
  if (!known.origin)
    return unknownValue();
  if (kindOf(root) == RootKind::Global && isSlot(types, known.type))
    choices.standsFor(known.origin, known.origin->args[0]->name.str());
  return const_cast<Memory *>(this)->symbolic(known.type, known.origin, known.text);
}

Value Memory::element(const Value &list, Term index) const {
  if (isSummary(list)) {
    if (Value known = elementOfEnds(list, index))
      return known;
    if (list->summary.size() != 1 && !isOfThisIteration(list, index))
      return unknownValue();
    return substitute(list->summary.back(), elementIndex(), index);
  }
  if (auto number = constantOf(index)) {
    if (*number >= 0 && *number < static_cast<std::int64_t>(list->elements.size()))
      return list->elements[static_cast<std::size_t>(*number)];
    return unknownValue();
  }
  Value any = list->elements.empty() ? unknownValue() : list->elements[0];
  for (const Value &other : list->elements)
    any = joinValues(any, other, applyTerm(op::elementOf, {index}));
  return any;
}

Term Memory::memberOf(const Value &record, Name field) const {
  const Name op = types.isPrivateField(record->type, field) ? op::inner : op::member;
  return applyTerm(op, {record->origin, textTerm(field)});
}

Value Memory::descend(const Value &value, Path node, const Address &whole) const {
  if (node->index)
    return is(value, ValueKind::List) ? element(value, node->index) : unknownValue();
  auto found = value->fields.find(node->field);
  if (found != value->fields.end())
    return found->second;
  if (!is(value, ValueKind::Record))
    return unknownValue();
  // A field of a torch::nn module that is a tensor is one of its parameters.
  if (value->fields.count(hidden::parameters) && types.builtinModuleBase(value->type)) {
    const Name type = types.fieldType(value->type, node->field);
    if (type.empty() || types.classOf(type) == TypeClass::Tensor)
      return parameterHandle({whole.root, fieldPath(whole.path, hidden::parameters)});
  }
  if (value->origin) {
    Name type =
        node->field == hidden::parameters ? Name("at::Tensor") : types.fieldType(value->type, node->field);
    if (type.empty())
      return unknownValue();
    Name text = joinText(value->function, ".", node->field);
    if (node->field == hidden::parameters)
      text = value->function;
    const bool ofModule = types.isModule(value->type) || node->field == hidden::parameters;
    const Term origin = memberOf(value, node->field);
    if (isSlot(types, type))
      choices.standsFor(origin, slotOf(value->type, node->field));
    return const_cast<Memory *>(this)->symbolic(type, origin, text,
                                                ofModule ? SymbolRole::Module : SymbolRole::Tensor);
  }
  return unknownValue();
}

Name Memory::typeAt(const Row &row, const Address &address) const {
  if (!address.path)
    return info(address.root).type;
  return address.path->index
             ? Name()
             : types.fieldType(read(row, {address.root, address.path->parent})->type, address.path->field);
}

// Is `node` the first step of `address`, to an element of what a pointer from outside leads to?
bool Memory::isOfOpenArray(const Row &row, const Address &address, Path node, const Value &value) const {
  return node->index && !node->parent && kindOf(address.root) == RootKind::Outside &&
         !is(value, ValueKind::List) && !row.store.get(address.root);
}

Value Memory::elementOutside(RootId root, Term index) const {
  const RootInfo first = info(root); // a copy: making a symbol may make roots
  const bool isFirst = constantOf(index) == 0;
  return const_cast<Memory *>(this)->symbolic(
      first.type, isFirst ? first.origin : applyTerm(op::element, {first.origin, index}),
      isFirst ? first.text : joinText(first.text, "", "[i]"));
}

Value Memory::read(const Row &row, const Address &address) const {
  if (!address.valid())
    return unknownValue();
  Value value = rootValue(row, address.root);
  Address prefix{address.root, nullptr};
  for (Path node : fromRoot(address.path)) {
    if (isOfOpenArray(row, address, node, value)) {
      value = elementOutside(address.root, node->index);
      prefix.path = node;
      continue;
    }
    value = descend(value, node, prefix);
    prefix.path = node;
  }
  return value;
}

Value Memory::replaceElement(const Value &list, Term index,
                             const std::function<Value(const Value &)> &change) const {
  ValueData data = *list;
  if (!isSummary(list)) {
    auto number = constantOf(index);
    if (number && *number >= 0 && *number < static_cast<std::int64_t>(data.elements.size())) {
      Value &slot = data.elements[static_cast<std::size_t>(*number)];
      slot = change(slot);
      return makeValue(std::move(data));
    }
    if (number && *number == static_cast<std::int64_t>(data.elements.size()) && *number < 16) {
      data.elements.push_back(change(unknownValue()));
      return makeValue(std::move(data));
    }
    // One that holds nothing yet is filled by a loop.
    const bool isEmpty =
        !data.elements.empty() && std::all_of(data.elements.begin(), data.elements.end(),
                                              [](const Value &slot) { return is(slot, ValueKind::Null); });
    if (isEmpty && index->name == op::loop)
      return replaceElement(summaryList(data.type, {nullValue()}), index, change);
    // An unknown index of a list of known length: any element may have changed.
    for (Value &slot : data.elements) // one that holds nothing yet is being filled
      slot = is(slot, ValueKind::Null) ? change(slot) : joinValues(slot, change(slot), index);
    return makeValue(std::move(data));
  }
  if (const Value known = elementOfEnds(list, index))
    return withElementOfEnds(list, index, change(known));
  data.fields.erase(hidden::head); // any of them may be the one
  data.fields.erase(hidden::tail);
  auto changedElement = [&](const Value &element) {
    return substitute(change(substitute(element, elementIndex(), index)), index, elementIndex());
  };
  // In a loop run for any iteration, the elements of the iterations before stay what they were made.
  const bool anyIteration = index->name == op::loop;
  if (isOfThisIteration(list, index)) {
    ValueData others = *list;
    others.summary.pop_back();
    return withElementOfIteration(makeValue(std::move(others)), changedElement(list->summary.back()), index);
  }
  if (anyIteration && list->term == previousIteration(index))
    return withElementOfIteration(list, changedElement(list->summary.back()), index);
  std::vector<Value> next;
  const bool everyElement = !constantOf(index);
  for (const Value &alternative : data.summary) {
    next.push_back(changedElement(alternative));
    if (!everyElement && !is(alternative, ValueKind::Null)) // what holds nothing yet is being filled
      next.push_back(alternative);
  }
  ValueData result = *summaryList(data.type, std::move(next));
  if (anyIteration && result.summary.size() == 1)
    result.term = index;
  return makeValue(std::move(result));
}

Value Memory::replace(const Value &value, const std::vector<Path> &path, std::size_t depth,
                      const Value &leaf) const {
  if (depth == path.size())
    return leaf;
  Path node = path[depth];
  if (node->index) {
    if (!is(value, ValueKind::List))
      return value;
    return replaceElement(value, node->index,
                          [&](const Value &old) { return replace(old, path, depth + 1, leaf); });
  }
  Value record = value;
  if (!is(value, ValueKind::Record) && !is(value, ValueKind::Function)) // captures are fields of a closure
    record = recordValue({});
  auto found = record->fields.find(node->field);
  Value old = found != record->fields.end() ? found->second : unknownValue();
  if (found == record->fields.end() && record->origin && depth + 1 < path.size()) {
    Name type = types.fieldType(record->type, node->field);
    if (!type.empty())
      old = const_cast<Memory *>(this)->symbolic(type, memberOf(record, node->field),
                                                 joinText(record->function, ".", node->field));
  }
  return withField(record, node->field, replace(old, path, depth + 1, leaf));
}

void Memory::noteChoices(const Row &row, const Address &address, const Value &value) const {
  if (!address.path) {
    const RootInfo &root = info(address.root);
    if (kindOf(address.root) == RootKind::Global && isSlot(types, root.type))
      choices.note(root.origin->args[0]->name.str(), value);
  } else if (!address.path->index && !is(value, ValueKind::Scalar) && !is(value, ValueKind::Null)) {
    const Name owner = read(row, {address.root, address.path->parent})->type;
    if (types.isProject(owner) && isSlot(types, types.fieldType(owner, address.path->field)))
      choices.note(slotOf(owner, address.path->field), value);
  }
  if (is(value, ValueKind::Record) && types.isProject(value->type))
    for (const auto &[name, field] : value->fields)
      if (!is(field, ValueKind::Null) && isSlot(types, types.fieldType(value->type, name)))
        choices.note(slotOf(value->type, name), field);
}

void Memory::write(Row &row, const Address &address, Value value) const {
  if (!address.valid())
    return;
  noteChoices(row, address, value);
  if (!address.path) {
    row.store.set(address.root, std::move(value));
    return;
  }
  if (const std::vector<Path> nodes = fromRoot(address.path);
      isOfOpenArray(row, address, nodes.front(), rootValue(row, address.root))) {
    row.store.set(address.root, unknownValue()); // elements are not told apart
    return;
  }
  row.store.set(address.root, replace(rootValue(row, address.root), fromRoot(address.path), 0, value));
}

Placement Memory::placementOf(const Row &row, const Value &tensor) const {
  if (is(tensor, ValueKind::Tensor) && tensor->address.valid()) {
    Value held = read(row, tensor->address);
    return is(held, ValueKind::Tensor) ? placementOf(row, held)
                                       : Placement::unknown(); // it may be registered since
  }
  if (!is(tensor, ValueKind::Tensor))
    return Placement::unknown();
  Placement placement = tensor->placement;
  // A module from outside that was moved here: the last move of the longest access path holds.
  if (placement.kind == PlacementKind::Symbol && placement.role == SymbolRole::Module)
    for (auto move = row.moves.rbegin(); move != row.moves.rend(); ++move)
      if (contains(placement.index, move->origin))
        return row.resolve(move->placement);
  return row.resolve(placement);
}

Placement Memory::placementKept(const Row &row, const Value &tensor) const {
  const Placement found = placementOf(row, tensor);
  if (!isFromOutside(row, tensor))
    return found;
  const Placement given = tensor->address.valid() ? read(row, tensor->address)->placement : tensor->placement;
  const bool isAnswer = found.kind == PlacementKind::Other ||
                        (found.kind == PlacementKind::Cuda && applies(found.index, op::indexOf));
  return isAnswer ? given : found;
}

bool Memory::isFromOutside(const Row &row, const Value &tensor) const {
  const Value held =
      is(tensor, ValueKind::Tensor) && tensor->address.valid() ? read(row, tensor->address) : tensor;
  return is(held, ValueKind::Tensor) && !held->address.valid() &&
         held->placement.kind == PlacementKind::Symbol && held->placement.role == SymbolRole::Tensor;
}

bool Memory::isPinned(const Row &row, const Value &tensor) const {
  const std::vector<Step> history = steps(historyOf(row, tensor));
  return std::any_of(history.begin(), history.end(), [](const Step &step) { return step.isPinned; });
}

bool Memory::mayBePinned(const Row &row, const Value &tensor) const {
  const std::vector<Step> history = steps(historyOf(row, tensor));
  return std::any_of(history.begin(), history.end(),
                     [](const Step &step) { return step.isPinned || step.isLent; });
}

History Memory::historyOf(const Row &row, const Value &tensor) const {
  if (is(tensor, ValueKind::Tensor) && tensor->address.valid())
    return historyOf(row, read(row, tensor->address));
  if (is(tensor, ValueKind::Tensor) && tensor->placement.kind == PlacementKind::Symbol &&
      tensor->placement.role == SymbolRole::Module)
    for (auto move = row.moves.rbegin(); move != row.moves.rend(); ++move)
      if (contains(tensor->placement.index, move->origin))
        return move->history;
  return tensor->history;
}

Term dimensionsOf(const Value &tensor) {
  const bool isAsGiven = is(tensor, ValueKind::Tensor) && tensor->placement.kind == PlacementKind::Symbol &&
                         tensor->history && tensor->history->step.kind == StepKind::Parameter &&
                         !tensor->history->isOfResult;
  return isAsGiven ? applyTerm(op::dimensions, {tensor->placement.index}) : nullptr;
}

int Memory::rankOf(const Row &row, const Value &tensor) const {
  if (!is(tensor, ValueKind::Tensor))
    return unknownRank;
  const Term asked = isOpenRank(tensor->rank) ? dimensionsOf(tensor) : nullptr;
  const auto known = asked ? constantOf(row.resolve(asked)) : std::nullopt;
  if (asked && !known && constantOf(row.resolve(applyTerm(op::greater, {asked, intTerm(0)}))) == 0)
    return 0;
  return known ? static_cast<int>(*known) : tensor->rank;
}

Value Memory::snapshot(const Row &row, const Value &tensor) const {
  return tensorValue(placementOf(row, tensor), rankOf(row, tensor), historyOf(row, tensor));
}

} // namespace devicetidy
