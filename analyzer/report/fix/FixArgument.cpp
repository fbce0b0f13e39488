//===- FixArgument.cpp - tensors that are made for the operation ---------===//
#include "analyzer/report/fix/FixPlanner.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Spelling.h"

#include <fmt/format.h>

#include <algorithm>

namespace devicetidy {
namespace {

namespace spelling = models::spelling;

/// Is the expression an argument of a call that `takes` says the name of, an element of a braced list of one,
/// or an argument of something that is, up to the bracket that contains `outer`?
template <class Takes>
bool isGivenTo(Takes takes, TokenRange file, TokenRange expression, const Token *outer) {
  const auto isSeparator = [](const Token &token) {
    return token.text == "," || token.text == "(" || token.text == "{";
  };
  if (expression.first == file.first || expression.last == file.last || !isSeparator(expression.first[-1]) ||
      (expression.last->text != "," && expression.last->text != ")" && expression.last->text != "}"))
    return false;
  for (const Token *open = enclosing(file, expression.first); open && open > outer;
       open = enclosing(file, open))
    if (open->text != "{" && (open->text != "(" || !takes(open[-1].text)))
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

/// `parts.push_back(` ... `);` is the whole statement.
bool isAppended(TokenRange file, const Token *list, TokenRange element) {
  return list + 4 == element.first && list[1].text == "." && spelling::appends(list[2].text) &&
         list[3].text == "(" && file.last - element.last > 1 && element.last->text == ")" &&
         element.last[1].text == ";";
}

/// The only place from `first` to the end of the block that mentions `name`, but for statements that append
/// to it; null when there is none, or more than one.
const Token *onlyUse(std::string_view name, const Token *first, const Token *last) {
  const Token *found = nullptr;
  int depth = 0;
  for (const Token *token = first; token != last && depth >= 0; ++token) {
    depth += token->text == "{" ? 1 : token->text == "}" ? -1 : 0;
    if (token->text != name || (last - token > 2 && token[1].text == "." && spelling::appends(token[2].text)))
      continue;
    if (found)
      return nullptr;
    found = token;
  }
  return found;
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
  if (!kept || !call || !operation || !isFactory(call->tokens) || call->where.file != operation->where.file)
    return std::nullopt;
  const Target target = targetOf(finding, *kept, *call);
  if (target.device.empty() || !isMadeFor(*call, *operation, target, finding))
    return std::nullopt;
  const std::string where = target.tensor.empty() ? target.device : "the device of '" + target.tensor + "'";
  return changeFactory(*call, target, fmt::format("make it on {}", where));
}

bool FixPlanner::isMadeFor(const Piece &call, const Piece &operation, const Target &target,
                           const Finding &finding) {
  const std::optional<Piece> kept = keptPiece(finding);
  const auto isOperation = [&](std::string_view function) {
    return function == lastPart(finding.operation) || spelling::passesOn(function) ||
           (!finding.operands[0].isCode && function == kept->tokens.last[-1].text);
  };
  const auto takes = [&](std::string_view function) {
    return isOperation(function) || spelling::isOption(function);
  };
  // From the call by way of the variables and lists that it is put in to the operation.
  TokenRange made = call.tokens;
  const Token *end = nullptr;
  while (made.first < operation.tokens.first) {
    const Token *statement = statementEnd(call.file, made.first);
    made = keptIn(call, made, finding);
    if (made.empty() || operation.tokens.first < statement)
      return false;
    end = end ? end : statement;
  }
  if (made.last > operation.tokens.last || !isGivenTo(takes, call.file, made, operation.tokens.first))
    return false;
  const std::vector<Token> device = tokenize(target.device);
  const std::string_view root = device.front().text;
  const Variable *variable = finding.site.declared(root, operation.where);
  const bool isOfKept = root == rootName(kept->tokens);
  if (!end || (!variable && !isOfKept)) // it is made in the operation, or the device is a constant or member
    return true;
  return variable && variable->where < call.where &&
         !(isOfKept && isInterrupted(end, statementStart(call.file, operation.tokens.first), root));
}

/// Where the variable or list is used that the statement puts `made` in: `auto h = torch::zeros({n});`,
/// `auto options = Options().weight(torch::ones({n}));`, `parts.push_back(torch::ones({n}));`. Empty when it
/// puts it elsewhere, or that has another use.
TokenRange FixPlanner::keptIn(const Piece &call, TokenRange made, const Finding &finding) {
  const Token *first = statementStart(call.file, made.first), *end = statementEnd(call.file, first);
  const Token *assign = std::find_if(first, made.first, [](const Token &token) { return token.text == "="; });
  const bool isList = isAppended(call.file, first, made);
  if (end == call.file.last || (!isList && (assign == made.first || assign == first)))
    return {};
  const Token *name = isList ? first : assign - 1;
  const Variable *variable = finding.site.declared(name->text, finding.where);
  const Location where = sources.range(call.where.file, name->begin, name->end);
  const bool isDeclaration = variable && variable->where.line == where.line;
  if (!variable || variable->isReference || (!isList && !isDeclaration) ||
      (!isList && assign + 1 != made.first && !isGivenTo(spelling::isOption, call.file, made, assign)))
    return {};
  const std::optional<Piece> declared = read(variable->where, {});
  const Token *from = declared ? statementEnd(declared->file, declared->tokens.first) : call.file.last;
  const Token *use = from < call.file.last ? onlyUse(name->text, from + 1, call.file.last) : nullptr;
  return use && end < use ? TokenRange{use, use + 1} : TokenRange{};
}

} // namespace devicetidy
