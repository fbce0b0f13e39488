#include "analyzer/report/fix/KeptResult.h"

#include "analyzer/models/Spelling.h"
#include "analyzer/report/source/ExpressionText.h"

#include <fmt/format.h>

namespace devicetidy {
namespace {

namespace spelling = models::spelling;

/// The arguments of the call of `callee` at `where` with their parentheses, as written. Of a call that a
/// macro makes, the text is the use of the macro.
std::string argumentsAt(const Location &where, std::string_view callee, SourceCache &sources) {
  const std::string_view call = sources.text(where);
  const bool isCall = call.substr(0, callee.size()) == callee;
  const std::size_t open = isCall ? call.find('(') : std::string_view::npos;
  if (open != std::string_view::npos)
    return std::string(call.substr(open));
  return spelling::deviceOfMove(callee).empty() ? "(...)" : "()";
}

/// `list.back()`, `map.at("x")`, `maybe.value()`: where a container or holder keeps something.
bool isElementCall(TokenRange expression) {
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
         (open[-2].text == "." || open[-2].text == "->") && spelling::givesElement(open[-1].text);
}

/// `(*p)`
bool isParenthesisedPointee(TokenRange expression) {
  return expression.size() >= 4 && expression[0].text == "(" && expression[1].text == "*" &&
         expression.last[-1].text == ")" && isRepeatable({expression.first + 2, expression.last - 1});
}

} // namespace

KeptResult keptResult(const Finding &finding, SourceCache &sources) {
  const std::string &tensor = finding.fields.at("tensor"), &method = finding.fields.at("method");
  if (const auto copy = finding.fields.find("copy"); copy != finding.fields.end())
    return {"copy", {}};
  const CodeSite &site = finding.site;
  const std::string arguments = argumentsAt(finding.where, method, sources);
  const std::vector<Token> tokens = tokenize(tensor);
  const TokenRange expression{tokens.data(), tokens.data() + tokens.size()};
  const bool isPointee = isParenthesisedPointee(expression);
  const bool isPlace = isPointee || isRepeatable(expression) || isElementCall(expression);
  if (site.isForgotten && isPlace) {
    // What moves all tensors of the module instead of one.
    const std::string module = site.module == "this->" ? "" : site.module;
    const std::string move = site.module.empty() ? "" : spelling::moduleMove(module, method, arguments);
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
