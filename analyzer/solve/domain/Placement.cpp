#include "analyzer/solve/domain/Placement.h"

#include "analyzer/solve/domain/TermOps.h"

#include <algorithm>

namespace devicetidy {
namespace {

bool ofLoop(Term term) { return applies(term, op::loop) || contains(term, elementIndex()); }

// Is `index` that of the device `chosen`, or the number that was chosen itself?
bool isIndexOf(Term index, Term chosen) {
  return index == chosen || index == applyTerm(op::indexOf, {chosen});
}

Verdict compareCuda(Term a, Term b, bool programSetsDevice) {
  if (isIndexOf(a, b) || isIndexOf(b, a))
    return Verdict::Same;
  auto ca = constantOf(a), cb = constantOf(b);
  if (ca && cb)
    return Verdict::Definite;
  if (applies(a, op::indexOf) && applies(b, op::indexOf))
    return Verdict::Open;
  const Term current = currentCudaIndex();
  if (a == current || b == current) {
    if (programSetsDevice)
      return Verdict::Silent;
    auto constant = ca ? ca : cb;
    if (constant)
      return *constant > 0 ? Verdict::Likely : Verdict::Silent;
    // "The index of a tensor that is on CUDA" may well be the current one.
    return applies(a, op::indexOf) || applies(b, op::indexOf) ? Verdict::Silent : Verdict::Likely;
  }
  return differentPositions(a, b) ? Verdict::Likely : Verdict::Latent;
}

// Most is saved on the CPU. Code that then puts what it meets elsewhere relies on what the file says.
Verdict compareSaved(const Placement &other, bool isAsked) {
  if (other.kind == PlacementKind::Cpu)
    return Verdict::Silent;
  const bool isChosen = other.kind != PlacementKind::Symbol || other.role == SymbolRole::DeviceChoice;
  return isChosen && !isAsked ? Verdict::Likely : Verdict::Open;
}

// Two elements of one list of devices that somebody outside has made.
bool areDifferentElements(const Placement &a, const Placement &b) {
  const auto isElement = [](const Placement &placement) {
    return placement.role == SymbolRole::DeviceChoice && placement.index->kind == TermKind::Apply &&
           placement.index->name == op::element && placement.index->args.size() == 2;
  };
  return isElement(a) && isElement(b) && a.index->args[0] == b.index->args[0] &&
         differentPositions(a.index->args[1], b.index->args[1]);
}

// Is it a GPU whose number somebody outside chooses?
bool isChosenGpu(const Placement &placement) {
  const Term index = placement.index;
  return placement.kind == PlacementKind::Cuda && !constantOf(index) && index != currentCudaIndex() &&
         !ofLoop(index) && !applies(index, op::back) && !applies(index, op::rank);
}

Verdict compareSymbol(const Placement &symbol, const Placement &other) {
  if (other.kind == PlacementKind::Cuda && symbol.index && isIndexOf(other.index, symbol.index))
    return Verdict::Same; // a number is its GPU, and so is where it was found
  // Code that asks whether a tensor is on CUDA has not put it there.
  const bool isAsked = other.kind == PlacementKind::Cuda && applies(other.index, op::indexOf);
  if (symbol.role == SymbolRole::Saved ||
      (other.kind == PlacementKind::Symbol && other.role == SymbolRole::Saved))
    return compareSaved(symbol.role == SymbolRole::Saved ? other : symbol, isAsked);
  if (other.kind == PlacementKind::Symbol && areDifferentElements(symbol, other))
    return Verdict::Likely;
  if (other.kind == PlacementKind::Symbol || isAsked)
    return Verdict::Open;
  // Callers may well keep a device and a number that they choose together.
  return symbol.role == SymbolRole::DeviceChoice && !isChosenGpu(other) ? Verdict::Likely : Verdict::Latent;
}

// Two elements of one list, at different distances from the iteration. The parts of a sum have no order.
bool areApart(Term a, Term b) {
  const auto split = [](Term term) {
    if (term->kind == TermKind::Apply && term->name == op::plus && term->args.size() == 2)
      for (const std::size_t i : {0, 1})
        if (const auto distance = constantOf(term->args[i]))
          return std::pair(term->args[1 - i], *distance);
    return std::pair(term, std::int64_t(0));
  };
  const auto [baseA, distanceA] = split(a);
  const auto [baseB, distanceB] = split(b);
  return baseA == baseB && distanceA != distanceB;
}

// "meta" is none: what is there is nowhere.
bool isAccelerator(const Placement &placement) {
  return placement.kind == PlacementKind::Cuda ||
         (placement.kind == PlacementKind::Other && placement.index->name != Name("meta"));
}

} // namespace

Term currentCudaIndex() {
  static const Name name("current device");
  return symbolTerm(name);
}

bool differentPositions(Term a, Term b) {
  if (a == b)
    return false;
  if (constantOf(a) && constantOf(b))
    return true;
  const auto number = constantOf(a) ? constantOf(a) : constantOf(b);
  // This iteration of a loop over devices against the iteration before.
  if (ofLoop(a) && ofLoop(b))
    return applies(a, op::previous) != applies(b, op::previous) || areApart(a, b);
  // A device that changes with the iteration, the last of a list, or the rank, against a fixed one. The
  // iteration after the loop may be the last of the list: those two are not told apart.
  auto varies = [](Term term) { return ofLoop(term) || applies(term, op::back) || applies(term, op::rank); };
  if (number) // any fixed device but the first may be that of the last iteration
    return (*number == 0 && (varies(a) || varies(b))) || applies(a, op::rank) || applies(b, op::rank);
  return applies(a, op::rank) != applies(b, op::rank) && varies(a) && varies(b);
}

Verdict compare(const Placement &a, const Placement &b, bool programSetsDevice) {
  if (!a.isKnown() || !b.isKnown())
    return Verdict::Silent;
  if (a == b)
    return Verdict::Same;
  if (a.kind == PlacementKind::Symbol)
    return compareSymbol(a, b);
  if (b.kind == PlacementKind::Symbol)
    return compareSymbol(b, a);
  if (a.kind == PlacementKind::Cuda && b.kind == PlacementKind::Cuda)
    return compareCuda(a.index, b.index, programSetsDevice);
  // A machine has accelerators of one kind: who names two asks which are there, or fails where one is named.
  return isAccelerator(a) && isAccelerator(b) ? Verdict::Silent : Verdict::Definite;
}

std::uint64_t Placement::hash() const {
  std::uint64_t hash = index ? index->hash : 7;
  return hash * 31 + static_cast<std::uint64_t>(kind) * 5 + static_cast<std::uint64_t>(role);
}

bool isConstant(const Placement &placement) {
  return placement.kind == PlacementKind::Cpu || placement.kind == PlacementKind::Other ||
         (placement.kind == PlacementKind::Cuda && placement.index &&
          (constantOf(placement.index) || placement.index == currentCudaIndex()));
}

namespace {

// Which element of a list of devices "devices[i]" is.
std::string textOfElement(const std::string &text, Term index) {
  constexpr std::string_view any = "[i]";
  if (!index || index->kind != TermKind::Apply || index->name != op::element || index->args.size() != 2 ||
      text.size() < any.size() || text.substr(text.size() - any.size()) != any)
    return text;
  const std::string list = text.substr(0, text.size() - any.size());
  const Term position = index->args[1];
  if (const auto number = constantOf(position))
    return list + "[" + std::to_string(*number) + "]";
  return applies(position, op::back)       ? list + ".back()"
         : applies(position, op::previous) ? list + "[i - 1]"
                                           : text;
}

} // namespace

bool isFormer(const Placement &placement) { return placement.index && applies(placement.index, op::former); }

std::string Placement::describe() const {
  // Two devices that one name stood for are told apart.
  const std::string former = isFormer(*this) ? " before it changed" : "";
  switch (kind) {
  case PlacementKind::Unknown:
    return "an unknown device";
  case PlacementKind::Cpu:
    return "cpu";
  case PlacementKind::Cuda:
    if (auto number = constantOf(index))
      return "cuda:" + std::to_string(*number);
    return index == currentCudaIndex() ? "cuda"
                                       : "cuda:" + (text.empty() ? std::string("i") : text.str()) + former;
  case PlacementKind::Other:
    return index->name.str();
  case PlacementKind::Symbol:
    return textOfElement(text.str(), index) + former;
  }
  return {};
}

} // namespace devicetidy
