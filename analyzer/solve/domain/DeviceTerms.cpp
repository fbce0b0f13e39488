#include "analyzer/solve/domain/DeviceTerms.h"

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
  std::string_view type = text.substr(0, text.find(':'));
  std::string_view index = text.size() > type.size() ? text.substr(type.size() + 1) : std::string_view();
  if (type == "cpu")
    return Placement::cpu();
  if (type == "cuda" || type == "gpu") {
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
  for (std::string_view other : {"mps", "xpu", "meta", "xla", "hip", "vulkan", "hpu", "privateuseone"})
    if (type == other)
      return Placement::other(Name(other));
  return std::nullopt;
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

const Name isCudaOp("is_cuda"), guessOp("guess");

// Each thread has terms of its own (Term.cpp).
Term isCudaOfUnknown() {
  thread_local const Term term = symbolTerm("is_cuda of an unknown tensor");
  return term;
}

} // namespace

Term guess(Term what) { return applyTerm(guessOp, {what}); }

bool restsOnGuess(Term condition) { return applies(condition, guessOp); }

bool asksForCuda(Term condition) {
  return condition == isCudaOfUnknown() || deviceWithIndex(condition) ||
         (condition->kind == TermKind::Apply && condition->name == isCudaOp);
}

Term isCudaTerm(const Placement &device) {
  switch (device.kind) {
  case PlacementKind::Cuda:
    return intTerm(1);
  case PlacementKind::Cpu:
  case PlacementKind::Other:
    return intTerm(0);
  default:
    return device.index ? applyTerm(isCudaOp, {deviceTerm(device)}) : isCudaOfUnknown();
  }
}

Term sameDeviceTerm(const Placement &a, const Placement &b) {
  if (!a.isKnown() && !b.isKnown())
    return symbolTerm("same device of two unknown tensors");
  if (!a.isKnown() || !b.isKnown())
    return applyTerm("unknown device ==", {deviceTerm(a.isKnown() ? a : b)});
  if (a == b)
    return intTerm(1);
  if (a.kind == PlacementKind::Symbol || b.kind == PlacementKind::Symbol) {
    const Placement &symbol = a.kind == PlacementKind::Symbol ? a : b;
    const Placement &other = a.kind == PlacementKind::Symbol ? b : a;
    if (other.kind == PlacementKind::Cpu)
      return notTerm(isCudaTerm(symbol));
    if (other.kind == PlacementKind::Cuda && other.index == currentCudaIndex())
      return isCudaTerm(symbol);
    return applyTerm("==", {deviceTerm(a), deviceTerm(b)});
  }
  if (a.kind != b.kind)
    return intTerm(0);
  if (a.kind == PlacementKind::Cuda) // a row that knows them to be equal knows the index, too
    return applyTerm("==", {a.index, b.index});
  return applyTerm("==", {deviceTerm(a), deviceTerm(b)});
}

bool isAssumed(const Row &row, const Placement &placement) {
  return placement.isKnown() && constantOf(row.resolve(sameDeviceTerm(placement, Placement::unknown()))) == 1;
}

// Constructors of devices, options and guards; `args` are values.
Term asAvailability(Term term) {
  if (term->kind != TermKind::Apply)
    return term;
  if (term->args.size() == 1 && term->name == Name("!")) {
    const Term inner = asAvailability(term->args[0]);
    return inner == term->args[0] ? term : notTerm(inner);
  }
  if (term->args.size() != 2)
    return term;
  const std::optional<std::int64_t> left = constantOf(term->args[0]), right = constantOf(term->args[1]);
  const bool countLeft = term->args[0] == countTerm(), countRight = term->args[1] == countTerm();
  if (term->name == Name("<") && countRight && left == 0)
    return availableTerm();
  const bool isNone = (term->name == Name("<") && countLeft && right == 1) ||
                      (term->name == Name("==") && ((countLeft && right == 0) || (countRight && left == 0)));
  return isNone ? notTerm(availableTerm()) : term;
}

bool isAbsent(const Row &row, const Placement &placement) {
  if (placement.kind != PlacementKind::Cuda)
    return false;
  const Term some = applyTerm(">", {countTerm(), intTerm(0)});
  return constantOf(row.resolve(availableTerm())) == 0 || constantOf(row.resolve(countTerm())) == 0 ||
         constantOf(row.resolve(some)) == 0;
}

} // namespace devicetidy
