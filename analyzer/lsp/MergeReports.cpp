#include "analyzer/lsp/MergeReports.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <array>
#include <map>

namespace devicetidy::lsp {
namespace {

/// Without the notes, which tell how it came about in one program.
llvm::StringRef sentenceOf(const ShownFinding &finding) {
  const llvm::json::Object *object = finding.diagnostic.getAsObject();
  return object ? object->getString("message").value_or("").split('\n').first : llvm::StringRef();
}

llvm::StringRef codeOf(const ShownFinding &finding) {
  const llvm::json::Object *object = finding.diagnostic.getAsObject();
  return object ? object->getString("code").value_or("") : llvm::StringRef();
}

bool isSame(const ShownFinding &a, const ShownFinding &b) {
  return a.range == b.range && codeOf(a) == codeOf(b) && sentenceOf(a) == sentenceOf(b);
}

bool touches(const llvm::lsp::Range &a, const llvm::lsp::Range &b) {
  return a.start <= b.end && b.start <= a.end;
}

/// Does it say where the expression is? A parameter without a known argument may be decided by
/// the callers of the other project.
bool isDecided(const ShownPlacement &placement) {
  const auto isOpen = [](const PlacedExpression &each) { return each.isOpen; };
  return placement.kind != PlacedKind::Other && !llvm::all_of(placement.devices, isOpen);
}

void addDevices(ShownPlacement &known, const ShownPlacement &other) {
  if (!isDecided(known) && isDecided(other))
    known = other;
  if (known.kind != other.kind || isDecided(known) != isDecided(other))
    return;
  bool isMore = false;
  for (std::size_t i = 0; i < other.devices.size(); ++i) {
    const PlacedExpression &each = other.devices[i];
    if (llvm::any_of(known.devices, [&](const auto &device) { return device.device == each.device; }))
      continue;
    known.devices.push_back(each);
    known.histories.push_back(other.histories[i]);
    isMore = true;
  }
  if (isMore)
    llvm::append_range(known.placing, other.placing); // equal places are listed once
  known.isDeclaration |= other.isDeclaration;
  known.isOpen |= other.isOpen;
}

} // namespace

FileReport merged(const FileReport &first, const FileReport &second) {
  FileReport result = first;
  for (const ShownFinding &each : second.findings)
    if (llvm::none_of(first.findings, [&](const ShownFinding &known) { return isSame(known, each); }))
      result.findings.push_back(each);
  llvm::stable_sort(result.findings, [](const ShownFinding &a, const ShownFinding &b) {
    return a.range.start < b.range.start;
  });
  for (const ShownFix &each : second.repairs)
    if (llvm::none_of(first.repairs, [&](const ShownFix &known) { return touches(known.range, each.range); }))
      result.repairs.push_back(each);
  std::map<std::array<int, 4>, std::size_t> places;
  const auto placeOf = [](const llvm::lsp::Range &range) {
    return std::array<int, 4>{range.start.line, range.start.character, range.end.line, range.end.character};
  };
  for (std::size_t i = 0; i < result.placements.size(); ++i)
    places.emplace(placeOf(result.placements[i].range), i);
  for (const ShownPlacement &each : second.placements)
    if (const auto known = places.find(placeOf(each.range)); known != places.end())
      addDevices(result.placements[known->second], each);
    else
      result.placements.push_back(each);
  return result;
}

} // namespace devicetidy::lsp
