//===- FixArgument.cpp - tensors that are made for the operation ---------===//
#include "analyzer/report/fix/FixPlanner.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Spelling.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace devicetidy {
namespace {

namespace spelling = models::spelling;

using Names = std::set<std::string_view>;

/// Is the expression from `first` to `last` an argument of one of `callees`, an element of a braced list of
/// one, or an argument of something that is, up to the bracket that contains `outer`?
bool isGivenTo(const Names &callees, TokenRange file, TokenRange expression, const Token *outer) {
  const auto isSeparator = [](const Token &token) {
    return token.text == "," || token.text == "(" || token.text == "{";
  };
  if (expression.first == file.first || expression.last == file.last || !isSeparator(expression.first[-1]) ||
      (expression.last->text != "," && expression.last->text != ")" && expression.last->text != "}"))
    return false;
  for (const Token *open = enclosing(file, expression.first); open && open > outer;
       open = enclosing(file, open))
    if (open->text != "{" && (open->text != "(" || callees.count(open[-1].text) == 0))
      return false;
  return true;
}

/// Does anything between the two tokens mention `root`, move something, or leave the run of statements?
bool isInterrupted(const Token *first, const Token *last, std::string_view root) {
  int depth = 0;
  for (const Token *token = first; token < last; ++token) {
    depth += token->text == "{" ? 1 : token->text == "}" ? -1 : 0;
    if (depth < 0 || token->text == root || spelling::isMove(token->text))
      return true;
  }
  return depth != 0;
}

/// Is the variable `use` mentioned nowhere else between `first` and the end of its block?
bool isOnlyUse(const Token *first, const Token *use, const Token *last) {
  int depth = 0;
  for (const Token *token = first; token != last && depth >= 0; ++token) {
    depth += token->text == "{" ? 1 : token->text == "}" ? -1 : 0;
    if (token != use && token->text == use->text)
      return false;
  }
  return true;
}

/// The start of the statement with `token`.
const Token *statementStart(TokenRange file, const Token *token) {
  while (token != file.first && token[-1].text != ";" && token[-1].text != "}" && token[-1].text != "{")
    --token;
  return token;
}

} // namespace

/// `torch::cat({cls, torch::zeros({n})})`: the tensor is made where the others are.
std::optional<Fix> FixPlanner::planArgument(const Finding &finding) {
  const PlacedOperand &left = finding.operands[1];
  const Step *made = decidingStep(left);
  if (!left.isCode || !made || made->kind != StepKind::Created || registeringStep(left) ||
      finding.site.isLambda || finding.site.isMadeInMacro || finding.site.isTemplate)
    return std::nullopt;
  const std::optional<Piece> kept = keptPiece(finding), call = read(made->where, {}),
                             operation = read(finding.where, {});
  if (!kept || !call || !operation || !isFactory(call->tokens) || call->where.file != operation->where.file ||
      !isMadeFor(*call, *operation, finding))
    return std::nullopt;
  const Target target = targetOf(finding, *kept, *call);
  if (target.device.empty())
    return std::nullopt;
  const std::string where = target.tensor.empty() ? target.device : "the device of '" + target.tensor + "'";
  return changeFactory(*call, target, fmt::format("make it on {}", where));
}

bool FixPlanner::isMadeFor(const Piece &call, const Piece &operation, const Finding &finding) {
  Names callees{lastPart(finding.operation), "forward", "make_tuple"}, options{"weight", "pos_weight"};
  const std::optional<Piece> kept = keptPiece(finding);
  if (!finding.operands[0].isCode)
    callees.insert(kept->tokens.last[-1].text);
  Names both = callees;
  both.insert(options.begin(), options.end());
  if (call.begin >= operation.begin && call.end <= operation.end)
    return isGivenTo(both, call.file, call.tokens, operation.tokens.first);
  // The declaration of a variable: `auto h = torch::zeros({n});`, `auto options =
  // Options().weight(torch::ones({n}));`
  const Token *first = statementStart(call.file, call.tokens.first), *end = statementEnd(call.file, first);
  const Token *assign =
      std::find_if(first, call.tokens.first, [](const Token &token) { return token.text == "="; });
  if (assign == call.tokens.first || assign == first || end == call.file.last || operation.tokens.first < end)
    return false;
  const std::string_view name = assign[-1].text, root = rootName(kept->tokens);
  const Variable *variable = finding.site.declared(name, operation.where);
  const Variable *keptRoot = finding.site.declared(root, operation.where);
  const auto where = sources.range(call.where.file, assign[-1].begin, assign[-1].end);
  if (!variable || variable->isReference || !keptRoot || !(keptRoot->where < where) ||
      !(variable->where < call.where) || variable->where.line != where.line)
    return false;
  if (assign + 1 != call.tokens.first && !isGivenTo(options, call.file, call.tokens, assign))
    return false;
  const Token *use = std::find_if(operation.tokens.first, operation.tokens.last,
                                  [&](const Token &token) { return token.text == name; });
  const Token *start = statementStart(call.file, operation.tokens.first);
  return use != operation.tokens.last && !isInterrupted(end, start, root) &&
         isGivenTo(callees, call.file, {use, use + 1}, operation.tokens.first) &&
         isOnlyUse(end, use, call.file.last);
}

} // namespace devicetidy
