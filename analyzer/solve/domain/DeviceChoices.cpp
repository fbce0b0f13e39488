#include "analyzer/solve/domain/DeviceChoices.h"

namespace devicetidy {
namespace {

bool isPlaced(const Value &value) {
  return is(value, ValueKind::Device) || is(value, ValueKind::Options) ||
         (is(value, ValueKind::Tensor) && !value->address.valid());
}

// Unknown when the value may be another device in another run.
Placement constantPlacement(const Value &value) {
  Placement placement;
  if (is(value, ValueKind::Options) && !value->hasDevice)
    return Placement::cpu();
  if (isPlaced(value))
    placement = value->placement;
  return isConstant(placement) ? placement : Placement::unknown();
}

} // namespace

void DeviceChoices::note(const std::string &slot, const Value &value) {
  const bool isTensor = is(value, ValueKind::Tensor);
  if (isTensor && value->count == 0) // it stands for one that there will be
    return;
  const bool isSymbol = isPlaced(value) && value->placement.kind == PlacementKind::Symbol;
  const std::string ownSlots = constructing.str() + "::";
  if (!constructing.empty() && !isTensor && (isSymbol || slot.compare(0, ownSlots.size(), ownSlots) == 0))
    return;
  if (isSymbol)
    if (const auto own = slots.find(value->placement.index); own != slots.end() && own->second == slot)
      return;
  Slot &entry = noted[slot];
  if (isTensor)
    (value->rank == 0          ? entry.isScalar
     : isOpenRank(value->rank) ? entry.hasOpenRank
     : value->rank > 1         ? entry.isWide
                               : entry.isLine) = true;
  const Placement placement = constantPlacement(value);
  if (!placement.isKnown() || (entry.only && *entry.only != placement))
    entry.isOpen = true;
  else
    entry.only = placement;
}

std::optional<Placement> DeviceChoices::settled(Term origin) const {
  const auto slot = slots.find(origin);
  if (slot == slots.end())
    return std::nullopt;
  const auto entry = noted.find(slot->second);
  if (entry == noted.end() || entry->second.isOpen)
    return std::nullopt;
  return entry->second.only;
}

bool DeviceChoices::mayBeScalar(Term origin, bool isPart) const {
  const auto slot = slots.find(origin);
  const auto entry = slot == slots.end() ? noted.end() : noted.find(slot->second);
  if (entry == noted.end() || entry->second.isScalar)
    return true;
  const Slot &held = entry->second;
  return isPart ? held.isLine || held.hasOpenRank : held.hasOpenRank && !held.isLine && !held.isWide;
}

bool DeviceChoices::isUnseen(Term origin) const {
  const auto slot = slots.find(origin);
  return slot != slots.end() && noted.find(slot->second) == noted.end();
}

} // namespace devicetidy
