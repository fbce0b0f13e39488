#include "analyzer/report/fix/KeptResult.h"

#include "analyzer/report/source/ExpressionText.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace devicetidy {
namespace {

/// The arguments of the call of `callee` at `where` with their parentheses, as written. Of a call that a
/// macro makes, the text is the use of the macro.
std::string argumentsAt(const Location &where, std::string_view callee, SourceCache &sources) {
  const std::string_view call = sources.text(where);
  const bool isCall = call.substr(0, callee.size()) == callee;
  const std::size_t open = isCall ? call.find('(') : std::string_view::npos;
  if (open != std::string_view::npos)
    return std::string(call.substr(open));
  return callee == "cuda" || callee == "cpu" ? "()" : "(...)"; // those two take no arguments
}

/// `list.back()`, `map.at("x")`, `maybe.value()`: where a container or holder keeps something.
bool isElementCall(TokenRange expression) {
  static constexpr std::array<std::string_view, 5> accessors = {"at", "back", "front", "get", "value"};
  if (expression.size() < 5 || expression.last[-1].text != ")")
    return false;
  const Token *open = expression.first;
  while (open != expression.last && open->text != "(")
    ++open;
  const TokenRange arguments{open + 1, expression.last - 1};
  const bool isPlain = arguments.empty() || isRepeatable(arguments) ||
                       (arguments.size() == 1 &&
                        (arguments[0].kind == TokenKind::Number || arguments[0].kind == TokenKind::Text));
  return isPlain && open - expression.first >= 3 && isRepeatable({expression.first, open - 2}) &&
         (open[-2].text == "." || open[-2].text == "->") &&
         std::find(accessors.begin(), accessors.end(), open[-1].text) != accessors.end();
}

/// `(*p)`
bool isParenthesisedPointee(TokenRange expression) {
  return expression.size() >= 4 && expression[0].text == "(" && expression[1].text == "*" &&
         expression.last[-1].text == ")" && isRepeatable({expression.first + 2, expression.last - 1});
}

/// The call of Module::to() that does for all tensors of a module what the lost call does for one.
std::string moduleMove(const std::string &module, const std::string &method, const std::string &arguments) {
  const std::string object = module == "this->" ? "" : module;
  if (method == "cuda" || method == "cpu")
    return fmt::format("{}to({})", object, method == "cuda" ? "torch::kCUDA" : "torch::kCPU");
  return method == "to" ? fmt::format("{}to{}", object, arguments) : std::string();
}

} // namespace

Advice keptResult(const Finding &finding, SourceCache &sources) {
  const std::string &tensor = finding.fields.at("tensor"), &method = finding.fields.at("method");
  const Site &site = finding.site;
  const std::string arguments = argumentsAt(finding.where, method, sources);
  const std::vector<Token> tokens = tokenize(tensor);
  const TokenRange expression{tokens.data(), tokens.data() + tokens.size()};
  const bool isPointee = isParenthesisedPointee(expression);
  const bool isPlace = isPointee || isRepeatable(expression) || isElementCall(expression);
  if (site.isForgotten && isPlace) {
    const std::string move = site.module.empty() ? "" : moduleMove(site.module, method, arguments);
    if (!move.empty())
      return {"module", move};
    if (site.isAssignable)
      return {"unused", {}};
  }
  const std::string call = fmt::format("{}{}{}{}", tensor, site.isPointee ? "->" : ".", method, arguments);
  if (!isPlace || !site.isAssignable)
    return {{}, fmt::format("auto moved = {}", call)};
  if (isPointee)
    return {{}, fmt::format("{} = {}", tensor.substr(1, tensor.size() - 2), call)};
  return {{}, fmt::format("{}{} = {}", site.isPointee ? "*" : "", tensor, call)};
}

} // namespace devicetidy
