//===- Placement.h - where a tensor lives -----------------------*- C++ -*-===//
//
// The lattice of the analysis, and the one table that says what may be reported when two placements meet.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/domain/Term.h"
#include "analyzer/solve/solution/Step.h"

#include <string>

namespace devicetidy {

enum class PlacementKind : std::uint8_t {
  Unknown, ///< never reported
  Cpu,
  Cuda,   ///< on the CUDA device `index`
  Other,  ///< mps, xpu, meta ...: `index` is a Text term with the name
  Symbol, ///< the device of a value that is fixed outside the analysed code; `index` identifies the value
};

/// What a symbol stands for decides how sure a difference is.
enum class SymbolRole : std::uint8_t {
  None,
  DeviceChoice, ///< a Device parameter, member, option or run-time string: made to be different from run to
                ///< run
  Tensor,       ///< the device of a tensor the caller passes
  Module,       ///< the device of a module the caller passes
  Saved,        ///< where something was when it was saved: it was loaded without a device
};

struct Placement {
  PlacementKind kind = PlacementKind::Unknown;
  SymbolRole role = SymbolRole::None;
  Term index = nullptr;
  Name text; ///< Symbol: how a user would name it ("device", "x.device()"); no part of its identity

  static Placement unknown() { return {}; }
  /// Where the outcome of an operation is that may fail: what it meets later is no mistake of its own.
  static Placement disputed() { return {PlacementKind::Unknown, SymbolRole::None, intTerm(1), {}}; }
  static Placement cpu() { return {PlacementKind::Cpu, SymbolRole::None, nullptr, {}}; }
  static Placement cuda(Term index) { return {PlacementKind::Cuda, SymbolRole::None, index, {}}; }
  static Placement other(Name name) { return {PlacementKind::Other, SymbolRole::None, textTerm(name), {}}; }
  static Placement symbol(SymbolRole role, Term id, Name text) {
    return {PlacementKind::Symbol, role, id, text};
  }

  bool isKnown() const { return kind != PlacementKind::Unknown; }
  bool isDisputed() const { return !isKnown() && index; }
  std::uint64_t hash() const;
  /// "cpu", "cuda:1", "cuda" (the current device), "device" ...
  std::string describe() const;

  friend bool operator==(const Placement &a, const Placement &b) {
    return a.kind == b.kind && a.index == b.index && a.role == b.role;
  }
  friend bool operator!=(const Placement &a, const Placement &b) { return !(a == b); }
};

/// Is it where something was when it was saved?
inline bool isSaved(const Placement &placement) { return placement.role == SymbolRole::Saved; }

/// Is it a device that somebody outside the analysed code chooses?
inline bool isChoice(const Placement &placement) {
  return placement.kind == PlacementKind::Symbol && placement.role == SymbolRole::DeviceChoice;
}

/// Is it one device in every run: the CPU, a GPU by its number, the current GPU, one of another kind?
bool isConstant(const Placement &placement);

/// The index of the current CUDA device at program start; `kCUDA` without an index means it until a guard
/// changes it.
Term currentCudaIndex();

enum class Verdict : std::uint8_t { Same, Silent, Open, Latent, Likely, Definite };

/// What to say when `a` and `b` must be one device: the tables of docs/verdicts.md, which a test holds it to.
/// `programSetsDevice`: the caller may have made any device current.
Verdict compare(const Placement &a, const Placement &b, bool programSetsDevice);

/// Two CUDA index terms that name different entries of one device range (front and back, this layer and the
/// last).
bool differentPositions(Term a, Term b);

/// Is it where something was before the object that holds it changed its device?
bool isFormer(const Placement &placement);

} // namespace devicetidy
