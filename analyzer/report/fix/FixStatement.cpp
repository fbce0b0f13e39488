//===- FixStatement.cpp - lost results and members that are not registered -===//
#include "analyzer/report/fix/FixPlanner.h"

#include "analyzer/models/Spelling.h"

#include <fmt/format.h>

#include <algorithm>

namespace devicetidy {
namespace {

namespace spelling = models::spelling;

/// Does the ":" end a label, and not the middle of "a ? b : c"?
bool endsLabel(const Token *colon, const Token *first) {
  for (const Token *token = colon; token != first;) {
    --token;
    if (token->text == "?")
      return false;
    if (token->text == ";" || token->text == "{" || token->text == "}")
      return true;
  }
  return true;
}

/// Can a statement begin behind `before`, a token of the file that begins with `first`?
bool endsStatement(const Token *last, const Token *first) {
  const Token &before = *last;
  return before.text == ";" || before.text == "{" || before.text == "}" || before.text == ")" ||
         (before.text == ":" && endsLabel(last, first)) || before.text == "," || before.text == "else" ||
         before.text == "do";
}

/// Does the expression request gradients? Nothing when only the running program knows.
std::optional<bool> asksForGradients(TokenRange expression) {
  std::optional<bool> asked;
  for (const Token *token = expression.first; token != expression.last; ++token) {
    if (!spelling::setsGradient(token->text) || token + 1 == expression.last || token[1].text != "(")
      continue;
    const Token *argument = token + 2, *close = closing(expression, token + 1);
    const bool isSaid = argument == close ||
                        (argument + 1 == close && (argument->text == "true" || argument->text == "false"));
    const bool isWanted = argument == close || argument->text == "true";
    if (!isSaid || (asked && *asked != isWanted))
      return std::nullopt;
    asked = isWanted;
  }
  return asked.value_or(false);
}

} // namespace

/// `x.to(device);` -> `x = x.to(device);`
std::optional<Fix> FixPlanner::planKeep(const Finding &finding) {
  const CodeSite &site = finding.site;
  if (!site.receiverIsTensor || !site.isAssignable || site.isPointee || site.isForgotten)
    return std::nullopt;
  const std::optional<Piece> object = read(site.receiver, finding.fields.at("tensor"));
  if (!object || !isRepeatable(object->tokens) || object->tokens.first == object->file.first ||
      !endsStatement(object->tokens.first - 1, object->file.first))
    return std::nullopt;
  // A parameter is registered with its module by its handle; another handle would not be the parameter.
  const std::string_view last = object->tokens.last[-1].text;
  const bool isParameter = object->tokens.size() > 2 && spelling::isParameterName(last) &&
                           object->tokens.last[-2].text == "->" && object->tokens[0].text != "this";
  if (isParameter)
    return std::nullopt;
  const bool isThis = object->tokens[0].text == "this";
  const std::string_view root = rootName(object->tokens);
  const bool isLocal = !isThis && site.declared(root, finding.where);
  if (!isLocal && (site.isLambda || (!isThis && !site.members.count(std::string(root)))))
    return std::nullopt;
  return makeFix(*object, fmt::format("{0} = {0}", object->text),
                 fmt::format("assign the result to '{}'", object->text));
}

/// `mean = torch::zeros({3});` -> `mean = register_buffer("mean", torch::zeros({3}));`
std::optional<Fix> FixPlanner::planRegister(const Finding &finding) {
  const std::string &member = finding.fields.at("member"), &className = finding.fields.at("class");
  const bool isModule = finding.fields.at("kind") == "submodule";
  if (!isModule && !finding.site.memberIsTensor)
    return std::nullopt;
  // `layer(3, 3)` names the member where the value of another notation is the expression alone.
  const std::optional<Piece> value = read(finding.site.memberValue, {});
  if (!value || isNoValue(value->tokens) || value->tokens[0].text == member)
    return std::nullopt;
  const std::optional<bool> isTrainable = asksForGradients(value->tokens);
  const auto registers = [](const Token &token) { return spelling::isRegistration(token.text); };
  if (!isTrainable || std::any_of(value->tokens.begin(), value->tokens.end(), registers))
    return std::nullopt;
  // In a class template the base class may depend on the arguments.
  const std::string_view function = spelling::registration(isModule       ? "submodule"
                                                           : *isTrainable ? "parameter"
                                                                          : "buffer");
  const std::string_view object = className.find('<') == std::string::npos ? "" : "this->";
  return makeFix(*value, fmt::format("{}{}(\"{}\", {})", object, function, member, value->text),
                 fmt::format("register '{}'", member));
}

} // namespace devicetidy
