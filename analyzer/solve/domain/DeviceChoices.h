//===- DeviceChoices.h - what a program puts into its device slots -*- C++ -*-===//
//
// A slot is a member that holds a device, options or a tensor ("Class::member"), or a global (its id). What
// an object from outside holds in a member is taken for the user's choice. But a program that only ever puts
// one device there, or tensors on one device, leaves no choice.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/domain/Value.h"

#include <map>
#include <optional>
#include <string>

namespace devicetidy {

class DeviceChoices {
public:
  /// `value` was put into the slot.
  void note(const std::string &slot, const Value &value);
  /// The symbol `origin` stands for what the slot holds in an object from outside.
  void standsFor(Term origin, const std::string &slot) { slots[origin] = slot; }
  /// The one device the program puts into the slot that `origin` stands for; nothing when there are several,
  /// when one is not known, or when nothing was seen to be put there.
  std::optional<Placement> settled(Term origin) const;
  /// May the tensor that the slot holds, or a part of it, have no dimensions? Where one is known to have
  /// some, so have others.
  bool mayBeScalar(Term origin, bool isPart) const;
  /// Does the symbol stand for a slot?
  bool isSlot(Term origin) const { return slots.count(origin) != 0; }
  /// The symbol stands for a slot that nothing was seen to be put into.
  bool isUnseen(Term origin) const;

  /// The class whose constructor is run without an object, or empty: what it puts into its own slots, and
  /// what comes from its arguments, is no choice of the program.
  Name constructing;

private:
  struct Slot {
    std::optional<Placement> only;
    bool isOpen = false;
    /// Tensors without dimensions, with one or some, with several, and of unknown rank.
    bool isScalar = false, isLine = false, isWide = false, hasOpenRank = false;
  };
  std::map<std::string, Slot> noted;
  std::map<Term, std::string> slots;
};

} // namespace devicetidy
