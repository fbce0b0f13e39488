#include "analyzer/solve/domain/DeviceTerms.h"

#include "analyzer/solve/domain/TermOps.h"

#include <algorithm>
#include <set>

namespace devicetidy {
Term availableTerm() { return symbolTerm("a CUDA device is available"); }
Term countTerm() { return symbolTerm("number of CUDA devices"); }

Placement deviceOfEnum(std::int64_t number) {
  // c10/core/DeviceType.h
  static const char *const names[] = {"cpu",  "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip",
                                      "fpga", "maia", "xla",    "vulkan", "metal",  "xpu",   "mps",
                                      "meta", "hpu",  "ve",     "lazy",   "ipu",    "mtia",  "privateuseone"};
  if (number == 0)
    return Placement::cpu();
  if (number == 1)
    return Placement::cuda(currentCudaIndex());
  if (number > 1 && number < static_cast<std::int64_t>(std::size(names)))
    return Placement::other(names[number]);
  return Placement::unknown();
}

std::optional<Placement> parseDevice(std::string_view text) {
  static const std::set<std::string_view> others = {"mps", "xpu",           "meta", "xla", "hip", "vulkan",
                                                    "hpu", "privateuseone", "npu",  "mlu", "musa"};
  const std::string_view type = text.substr(0, text.find(':'));
  const std::string_view index =
      text.size() > type.size() ? text.substr(type.size() + 1) : std::string_view();
  if (type == "cpu")
    return Placement::cpu();
  if (others.count(type))
    return Placement::other(Name(type));
  if (type != "cuda" && type != "gpu")
    return std::nullopt;
  if (index.empty())
    return Placement::cuda(currentCudaIndex());
  std::int64_t number = 0;
  for (char c : index) {
    if (c < '0' || c > '9' || number > 1000)
      return std::nullopt;
    number = number * 10 + (c - '0');
  }
  return Placement::cuda(intTerm(number));
}

std::optional<Placement> deviceOf(const Memory &memory, const Row &row, const Value &value) {
  switch (value->kind) {
  case ValueKind::Device:
    return row.resolve(value->placement);
  case ValueKind::Options:
    return value->hasDevice ? std::optional<Placement>(row.resolve(value->placement)) : std::nullopt;
  case ValueKind::Tensor:
    return memory.placementOf(row, value);
  case ValueKind::Scalar: {
    Term term = row.resolve(value->term);
    if (std::optional<Name> text = textOf(term)) {
      if (std::optional<Placement> parsed = parseDevice(text->view()))
        return parsed;
      return std::nullopt;
    }
    if (constantOf(term))
      return std::nullopt;
    return Placement::symbol(SymbolRole::DeviceChoice, term, "a device chosen at run time");
  }
  default:
    return std::nullopt;
  }
}

namespace {

// Each thread has terms of its own (Term.cpp).
Term isCudaOfUnknown() {
  thread_local const Term term = symbolTerm("is_cuda of an unknown tensor");
  return term;
}

} // namespace

Term guess(Term what) { return applyTerm(op::guess, {what}); }

namespace {

Term leftOut() {
  thread_local const Term term = symbolTerm("what a bound has left out");
  return term;
}

} // namespace

Term bounded(std::vector<Term> parts) {
  parts.insert(parts.begin(), leftOut());
  return applyTerm(op::call, std::move(parts));
}

bool restsOnBound(Term what) { return contains(what, leftOut()); }

Condition raisedCondition() {
  thread_local const Term term = guess(symbolTerm("an exception was raised"));
  return {term, 1};
}

bool restsOnOutside(Term what) {
  // What these give depends on their arguments alone.
  static const std::set<Name> computing = {
      op::plus,        op::minus,  op::times,    op::divide,         op::remainder,  op::negate,
      op::bitAnd,      op::bitOr,  op::bitXor,   op::shiftLeft,      op::shiftRight, op::complement,
      op::negation,    op::equal,  op::unequal,  op::less,           op::greater,    op::lessOrEqual,
      op::floatNumber, op::concat, op::toString, op::greaterOrEqual, op::alternative};
  switch (what->kind) {
  case TermKind::Int:
  case TermKind::Text:
    return false;
  case TermKind::Symbol:
    return true;
  case TermKind::Apply:
    break;
  }
  if (what->name == op::guess)
    return false;
  return !computing.count(what->name) || std::any_of(what->args.begin(), what->args.end(), restsOnOutside);
}

bool isGuess(Term condition) { return applies(condition, op::guess) || !restsOnOutside(condition); }

bool asksForCuda(Term condition) {
  if (condition->kind == TermKind::Symbol)
    return condition == isCudaOfUnknown();
  return condition->kind == TermKind::Apply && (condition->name == op::isCuda || deviceWithIndex(condition));
}

Term isCudaTerm(const Placement &device) {
  switch (device.kind) {
  case PlacementKind::Cuda:
    return intTerm(1);
  case PlacementKind::Cpu:
  case PlacementKind::Other:
    return intTerm(0);
  default:
    return device.index ? applyTerm(op::isCuda, {deviceTerm(device)}) : isCudaOfUnknown();
  }
}

bool isBounded(const Row &row) {
  return row.bounded || std::any_of(row.known.begin(), row.known.end(),
                                    [](const Condition &condition) { return restsOnBound(condition.first); });
}

bool isGuessed(const Row &row) {
  return row.guessed || std::any_of(row.known.begin(), row.known.end(),
                                    [](const Condition &condition) { return isGuess(condition.first); });
}

bool isOutside(const Placement &placement) {
  return placement.kind == PlacementKind::Symbol ||
         (placement.kind == PlacementKind::Cuda && applies(placement.index, op::indexOf));
}

namespace {

Term findParameter(Term term) {
  if (term->kind != TermKind::Apply)
    return nullptr;
  if (term->name == op::parameter)
    return term;
  for (Term arg : term->args)
    if (const Term found = findParameter(arg))
      return found;
  return nullptr;
}

std::size_t countOf(Term term, Name op) {
  std::size_t count = term->kind == TermKind::Apply && term->name == op;
  for (Term arg : term->args)
    count += countOf(arg, op);
  return count;
}

// Is it an element of a list of devices behind the first?
bool isLaterElement(Term device) {
  return applies(device, op::element) && device->args.size() == 2 && constantOf(device->args[1]) != 0;
}

} // namespace

std::string callThatWasGiven(Term term) {
  const Term parameter = term ? findParameter(term) : nullptr;
  return parameter ? parameter->args[0]->name.str() : std::string();
}

std::string callThatWasGiven(const Placement &placement) { return callThatWasGiven(placement.index); }

Term originOf(const Placement &placement) {
  const Term parameter = placement.index ? findParameter(placement.index) : nullptr;
  return parameter ? parameter : placement.index;
}

bool isStateOutside(const Placement &placement) {
  if (!isOutside(placement) || !placement.index || placement.role == SymbolRole::Module)
    return false;
  return placement.role == SymbolRole::Tensor
             ? countOf(placement.index, op::member) + countOf(placement.index, op::inner) > 1
             : countOf(placement.index, op::pointee) > 1;
}

Term holderOf(const Placement &placement) {
  Term holder = nullptr;
  for (Term term = placement.index; term && term->kind == TermKind::Apply && !term->args.empty();
       term = term->args[0])
    if (term->name == op::inner)
      holder = term->args[0];
  return holder && applies(holder, op::pointee) ? holder->args[0] : holder;
}

Term groupOf(const Placement &placement) {
  const bool isChosen =
      placement.kind == PlacementKind::Cuda ||
      (placement.kind == PlacementKind::Symbol &&
       (placement.role == SymbolRole::DeviceChoice || placement.role == SymbolRole::Module));
  if (!isChosen)
    return nullptr;
  return applies(placement.index, op::element) ? placement.index->args[0] : placement.index;
}

Term sameDeviceTerm(const Placement &a, const Placement &b) {
  if (!a.isKnown() && !b.isKnown())
    return symbolTerm("same device of two unknown tensors");
  if (!a.isKnown() || !b.isKnown())
    return applyTerm(op::sameAsUnknown, {deviceTerm(a.isKnown() ? a : b)});
  if (a == b)
    return intTerm(1);
  if (a.kind == PlacementKind::Symbol || b.kind == PlacementKind::Symbol) {
    const Placement &symbol = a.kind == PlacementKind::Symbol ? a : b;
    const Placement &other = a.kind == PlacementKind::Symbol ? b : a;
    if (other.kind == PlacementKind::Cpu)
      return notTerm(isCudaTerm(symbol));
    if (other.kind == PlacementKind::Cuda && other.index == currentCudaIndex() &&
        !isLaterElement(symbol.index))
      return isCudaTerm(symbol);
    return applyTerm(op::equal, {deviceTerm(a), deviceTerm(b)});
  }
  if (a.kind != b.kind)
    return intTerm(0);
  // The question above, asked once more where its answer is known.
  if (a.kind == PlacementKind::Cuda && (isOutside(a) || isOutside(b)) &&
      (a.index == currentCudaIndex() || b.index == currentCudaIndex()))
    return intTerm(1);
  if (a.kind == PlacementKind::Cuda) // a row that knows them to be equal knows the index, too
    return applyTerm(op::equal, {a.index, b.index});
  return applyTerm(op::equal, {deviceTerm(a), deviceTerm(b)});
}

bool isAssumed(const Row &row, const Placement &placement) {
  const bool assumesAny = std::any_of(row.known.begin(), row.known.end(), [](const auto &condition) {
    return condition.first->kind == TermKind::Apply && condition.first->name == op::sameAsUnknown;
  });
  return assumesAny && placement.isKnown() &&
         constantOf(row.resolve(sameDeviceTerm(placement, Placement::unknown()))) == 1;
}

Term asAvailability(Term term) {
  if (term->kind != TermKind::Apply)
    return term;
  if (term->args.size() == 1 && term->name == op::negation) {
    const Term inner = asAvailability(term->args[0]);
    return inner == term->args[0] ? term : notTerm(inner);
  }
  if (term->args.size() != 2)
    return term;
  const std::optional<std::int64_t> left = constantOf(term->args[0]), right = constantOf(term->args[1]);
  const bool countLeft = term->args[0] == countTerm(), countRight = term->args[1] == countTerm();
  if (term->name == op::less && countRight && left == 0)
    return availableTerm();
  const bool isNone = (term->name == op::less && countLeft && right == 1) ||
                      (term->name == op::equal && ((countLeft && right == 0) || (countRight && left == 0)));
  return isNone ? notTerm(availableTerm()) : term;
}

bool isAbsent(const Row &row, const Placement &placement) {
  if (placement.kind != PlacementKind::Cuda)
    return false;
  const Term some = applyTerm(op::greater, {countTerm(), intTerm(0)});
  return constantOf(row.resolve(availableTerm())) == 0 || constantOf(row.resolve(countTerm())) == 0 ||
         constantOf(row.resolve(some)) == 0;
}

} // namespace devicetidy
