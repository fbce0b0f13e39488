//===- FixOperand.cpp - moving the tensor that is elsewhere --------------===//
#include "analyzer/report/fix/FixPlanner.h"

#include "analyzer/models/Models.h"
#include "analyzer/models/Spelling.h"
#include "analyzer/report/finding/StepText.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace devicetidy {
namespace {

namespace spelling = models::spelling;

/// Is the expression that ends before `next` written to: `y += x`, `y.add_(x)`?
bool isWrittenTo(const Token *next, const Token *end) {
  if (next == end)
    return false;
  static constexpr std::array<std::string_view, 8> assignments = {
      "=", "+=", "-=", "*=", "/=", "&=", "|=", "^="};
  if (std::find(assignments.begin(), assignments.end(), next->text) != assignments.end())
    return true;
  return next->text == "." && next + 1 != end && next[1].text.size() > 1 && next[1].text.back() == '_';
}

} // namespace

std::optional<Fix> FixPlanner::planMove(const Finding &finding) {
  if (const Step *registered = registeringStep(finding.operands[1]);
      registered && !registered->device.empty())
    return planMoveAgain(finding, *registered);
  if (!finding.operands[1].module.empty())
    return planModuleMove(finding);
  if (std::optional<Fix> fix = planCreation(finding))
    return fix;
  if (std::optional<Fix> fix = planOperandMove(finding))
    return fix;
  return planArgument(finding);
}

std::optional<Fix> FixPlanner::planOperandMove(const Finding &finding) {
  const PlacedOperand &keptOperand = finding.operands[0], &movedOperand = finding.operands[1];
  const std::optional<Piece> kept = keptPiece(finding), moved = operandPiece(finding, movedOperand);
  if (!movedOperand.isCode || registeringStep(movedOperand) || !kept || !moved || isPointer(*moved) ||
      isNoValue(moved->tokens) || !isTensor(finding, *moved) ||
      isWrittenTo(moved->tokens.last, moved->file.last))
    return std::nullopt;
  const Target target = targetOf(finding, *kept, *moved);
  if (target.device.empty())
    return std::nullopt;
  if (!target.tensor.empty())
    if (std::optional<Fix> fix = planFactory(finding, *moved, target))
      return fix;
  const std::string object =
      isPostfix(moved->tokens) ? std::string(moved->text) : fmt::format("({})", moved->text);
  return makeFix(*moved, spelling::move(object, target.device),
                 fmt::format("move '{}' to the device of {}", movedOperand.text, operandText(keptOperand)));
}

std::optional<FixPlanner::Piece> FixPlanner::operandPiece(const Finding &finding,
                                                          const PlacedOperand &operand) {
  const std::optional<Piece> piece = read(operand.where, operand.text);
  const std::optional<Piece> list = piece ? std::nullopt : read(operand.where, {});
  if (!list || list->tokens[0].text != "{" ||
      closing(list->tokens, list->tokens.first) != list->tokens.last - 1)
    return piece;
  std::optional<Piece> found;
  for (const TokenRange element : splitArguments({list->tokens.first + 1, list->tokens.last - 1})) {
    const std::optional<Piece> part = partOf(*list, element);
    if (!part || part->text != operand.text)
      continue;
    if (found || !isTensor(finding, *part)) // which of two is meant is not known
      return std::nullopt;
    found = part;
  }
  return found;
}

bool FixPlanner::isTensor(const Finding &finding, const Piece &piece) {
  const CodeSite &site = finding.site;
  if (site.isTensor(piece.where))
    return true;
  if (site.isTemplate || piece.tokens.size() != 1)
    return !site.isTemplate && isFactory(piece.tokens);
  const Variable *local = site.declared(piece.text, piece.where);
  const auto member = site.members.find(std::string(piece.text));
  const std::string_view type = local                          ? local->type.view()
                                : member == site.members.end() ? std::string_view()
                                                               : member->second.view();
  return spelling::isTensorType(type);
}

std::optional<FixPlanner::Piece> FixPlanner::keptPiece(const Finding &finding) {
  const PlacedOperand &kept = finding.operands[0];
  if (kept.isCode)
    return operandPiece(finding, kept);
  return kept.module.empty() ? std::nullopt : read(finding.site.receiver, kept.module);
}

std::string FixPlanner::deviceVariable(const PlacedOperand &kept, const CodeSite &site,
                                       const Location &before) {
  const Step *put = decidingStep(kept);
  if (!put || !put->where.valid())
    return {};
  const std::string_view text = sources.line(put->where.file, put->where.line).value_or("");
  const auto isDevice = [](Name type) { return models::typeKind(type.view()) == "device"; };
  std::set<std::string> found;
  for (const Token &word : tokenize(text)) {
    const std::string name(word.text);
    const Variable *local = site.declared(name, put->where);
    const auto member = site.members.find(name);
    if (local ? isDevice(local->type) && local == site.declared(name, before)
              : member != site.members.end() && isDevice(member->second))
      found.insert(name);
  }
  return found.size() == 1 ? *found.begin() : std::string();
}

bool FixPlanner::saysDevice(const PlacedOperand &kept) {
  const auto names = [&](const Step &step) {
    const std::vector<Token> code = tokenize(sources.text(step.where));
    const auto isChoice = [](const Token &token) { return token.text == "?"; };
    const auto isNamed = [&](const Token &token) {
      const std::string_view constant = spelling::deviceConstant(token.text);
      const std::string_view device = constant.empty() ? spelling::deviceOfMove(token.text) : constant;
      return !device.empty() && kept.device.rfind(device, 0) == 0;
    };
    return std::none_of(code.begin(), code.end(), isChoice) &&
           (std::any_of(code.begin(), code.end(), isNamed) ||
            (step.kind == StepKind::Created && isDefaultFactory({code.data(), code.data() + code.size()})));
  };
  const Step *put = decidingStep(kept);
  if (!put || put->device != kept.device)
    return false;
  return put->kind == StepKind::ModuleMade ||
         std::any_of(kept.history.begin(), kept.history.end(), [&](const Step &step) {
           const bool isOfDevice = &step == put || step.kind == StepKind::Named;
           return isOfDevice && step.where.valid() && step.device == kept.device && names(step);
         });
}

bool FixPlanner::isMadeHere(const PlacedOperand &kept, const Piece &piece) {
  const Step *put = decidingStep(kept);
  const auto bytes = put && put->where.file == piece.where.file ? sources.bytes(put->where) : std::nullopt;
  return bytes && put->kind == StepKind::Created && bytes->first == piece.begin && bytes->second == piece.end;
}

FixPlanner::Target FixPlanner::targetOf(const Finding &finding, const Piece &kept, const Piece &moved) {
  Target target;
  // The tensor behind views, or else the operand itself: `m[i]` is a view of a tensor, but not of a vector.
  for (const std::optional<Piece> &source : {partOf(kept, withoutViews(kept.tokens)), std::optional(kept)})
    if (source && isRepeatable(source->tokens) && isTensor(finding, *source) &&
        source->text.find('\n') == std::string_view::npos) {
      // The object of `p->add_(y)` is a tensor, but `p` is a pointer to it.
      const std::string_view access = isPointer(*source) ? "->" : ".";
      target.tensor = source->text;
      target.device = spelling::deviceOf(source->text, access);
      if (hasDefaultOptions(finding, *source, std::min(kept.tokens.first, moved.tokens.first)))
        target.options = spelling::optionsOf(source->text, access);
      return target;
    }
  const bool isModule = !finding.operands[0].isCode;
  if (isModule)
    target.tensor = kept.text;
  target.device = deviceVariable(finding.operands[0], finding.site, finding.where);
  if (!target.device.empty())
    return target;
  // Evaluating a call twice could do something twice. Naming the device is right when it is the only one
  // that ever comes here.
  const bool isOnly = finding.level == Level::Definite && finding.callers.empty() && !finding.site.isTemplate;
  if (saysDevice(finding.operands[0]) && (isOnly || isMadeHere(finding.operands[0], kept)))
    target.device = spelling::device(finding.operands[0].device);
  if (target.device.empty() && isModule && isRepeatable(kept.tokens) && isPointer(kept))
    target.device = spelling::deviceOf(spelling::firstParameter(kept.text), ".");
  return target;
}

} // namespace devicetidy
