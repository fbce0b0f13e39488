//===- FixFactory.cpp - making a tensor in the right place ---------------===//
#include "analyzer/report/fix/FixPlanner.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Models.h"
#include "analyzer/models/Spelling.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace devicetidy {
namespace {

namespace spelling = models::spelling;

/// `torch::zeros(` ... `)` and nothing else.
const spelling::Factory *factoryOf(TokenRange expression) {
  if (expression.size() < 5 || !spelling::isNamespace(expression[0].text) || expression[1].text != "::" ||
      expression[3].text != "(" || closing(expression, expression.first + 3) != expression.last - 1)
    return nullptr;
  return spelling::factory(expression[2].text);
}

/// `torch::kCPU` -> "kCPU"; empty for anything else.
std::string_view constantOf(TokenRange expression) {
  if (expression.size() == 3 && expression[1].text == "::" && spelling::isNamespace(expression[0].text))
    expression.first += 2;
  return expression.size() == 1 && expression[0].text.size() > 2 && expression[0].text[0] == 'k'
             ? expression[0].text
             : std::string_view();
}

/// Does the argument of a factory say where, and nothing else?
bool isDevice(const Finding &finding, TokenRange argument) {
  if (!spelling::deviceConstant(constantOf(argument)).empty())
    return true;
  if (argument.size() == 1) {
    const auto isVariable = [&](const Variable &local) {
      return local.name.view() == argument[0].text && models::typeKind(local.type.view()) == "device";
    };
    return std::any_of(finding.site.locals.begin(), finding.site.locals.end(), isVariable);
  }
  return argument.size() > 4 && argument[1].text == "::" && spelling::isDeviceClass(argument[2].text) &&
         argument[3].text == "(" && closing(argument, argument.first + 3) == argument.last - 1;
}

} // namespace

bool FixPlanner::isFactory(TokenRange expression) { return factoryOf(expression) != nullptr; }

bool FixPlanner::isDefaultFactory(TokenRange expression) {
  const spelling::Factory *factory = factoryOf(expression);
  return factory && splitArguments({expression.first + 4, expression.last - 1}).size() == factory->arguments;
}

/// Is `tensor` a variable that was declared with a factory call in the same run of statements as `operation`,
/// with at most a device besides the defaults, and not mentioned since? Its options are those that a factory
/// uses by itself, then, but for the device.
bool FixPlanner::hasDefaultOptions(const Finding &finding, const Piece &tensor, const Token *operation) {
  const Variable *variable =
      tensor.tokens.size() == 1 ? finding.site.declared(tensor.text, tensor.where) : nullptr;
  const std::optional<Piece> made = variable ? initialiserOf(*variable) : std::nullopt;
  const spelling::Factory *factory = made ? factoryOf(made->tokens) : nullptr;
  if (!factory || !factory->hasDefaultType)
    return false;
  const std::vector<TokenRange> arguments = splitArguments({made->tokens.first + 4, made->tokens.last - 1});
  if (arguments.size() != factory->arguments &&
      (arguments.size() != factory->arguments + 1 || !isDevice(finding, arguments.back())))
    return false;
  int depth = 0;
  for (const Token *token = made->tokens.last; token < operation; ++token) {
    depth += token->text == "{" ? 1 : token->text == "}" ? -1 : 0;
    if (depth < 0 || token->text == tensor.text || token->text == "for" || token->text == "while" ||
        token->text == "do")
      return false;
  }
  return depth == 0;
}

/// Rather than moved, a tensor that a factory makes for this operation only is made in the right place.
std::optional<Fix> FixPlanner::planFactory(const Finding &finding, const Piece &moved, const Target &target) {
  const std::string description = fmt::format("make it on the device of '{}'", target.tensor);
  if (factoryOf(moved.tokens))
    return changeFactory(moved, target, description);
  const std::optional<Piece> factory = soleFactoryOf(finding, moved);
  return factory ? changeFactory(*factory, target, description) : std::nullopt;
}

/// `noise = torch::randn({n});`: the expression that the declaration gives to `variable`.
std::optional<FixPlanner::Piece> FixPlanner::initialiserOf(const Variable &variable) {
  const std::optional<Piece> name = read(variable.where, {});
  if (!name)
    return std::nullopt;
  const Token *token = name->tokens.first;
  while (token != name->file.last && token->text != variable.name.view())
    ++token;
  if (name->file.last - token < 4 || token[1].text != "=")
    return std::nullopt;
  const Token *end = statementEnd(name->file, token + 2);
  return end == name->file.last ? std::nullopt : partOf(*name, {token + 2, end});
}

/// The factory call that initialises the variable `moved`, when the variable has no other use than this
/// operation and the other operand is as it will be already where the factory is called.
std::optional<FixPlanner::Piece> FixPlanner::soleFactoryOf(const Finding &finding, const Piece &moved) {
  const PlacedOperand &keptOperand = finding.operands[0], &movedOperand = finding.operands[1];
  if (moved.tokens.size() != 1 || movedOperand.history.size() != 1 ||
      movedOperand.history[0].kind != StepKind::Created)
    return std::nullopt;
  const std::optional<Piece> kept = keptPiece(finding);
  const std::string_view root = rootName(kept->tokens);
  const Variable *variable = finding.site.declared(moved.text, moved.where);
  const Variable *keptRoot = finding.site.declared(root, moved.where);
  if (!variable || !keptRoot || !(keptRoot->where < variable->where) || finding.site.isLambda ||
      finding.site.isMadeInMacro)
    return std::nullopt;
  const std::optional<Piece> factory = initialiserOf(*variable);
  if (!factory || !factoryOf(factory->tokens))
    return std::nullopt;
  // Nothing but uses of other names up to the operation.
  const Token *operation = std::min(kept->tokens.first, moved.tokens.first);
  for (const Token *between = factory->tokens.last; between < operation; ++between)
    if (between->text == moved.text || between->text == root || spelling::isMove(between->text) ||
        between->text == "{" || between->text == "}")
      return std::nullopt;
  for (const Token *after = moved.tokens.last; after != moved.file.last && after->text != "}"; ++after)
    if (after->text == moved.text)
      return std::nullopt;
  for (const Step &step : keptOperand.history)
    if (step.where.file == moved.where.file && variable->where < step.where && step.where < moved.where)
      return std::nullopt;
  return factory;
}

/// A tensor that is made elsewhere and only passed on, where there is a variable that names the device.
std::optional<Fix> FixPlanner::planCreation(const Finding &finding) {
  const PlacedOperand &left = finding.operands[1];
  const Step *made = decidingStep(left);
  const CodeSite &site = finding.madeSite;
  if (!made || made->kind != StepKind::Created || site.inMacro || site.isTemplate || registeringStep(left))
    return std::nullopt;
  const std::optional<Piece> call = read(made->where, {});
  const std::string device = deviceVariable(finding.operands[0], site, made->where);
  if (device.empty() || !call || !factoryOf(call->tokens) || !isOnlyPassed(*call, finding))
    return std::nullopt;
  return changeFactory(*call, {device, device, {}}, fmt::format("create it on '{}'", device));
}

/// Is the tensor that the factory call makes, or the variable that is given it, nothing but an argument of
/// calls like those that lead to the operation? What another call wants of it is not known.
bool FixPlanner::isOnlyPassed(const Piece &call, const Finding &finding) {
  std::set<std::string_view> callees{lastPart(finding.operation), finding.operands[0].module};
  for (const CallSite &each : finding.callers)
    callees.insert({std::string_view(lastPart(each.function)), std::string_view(each.module)});
  const auto isPassed = [&](const Token *first, const Token *last) {
    const auto isSeparator = [](const Token &token) { return token.text == "," || token.text == "("; };
    if (first == call.file.first || last == call.file.last || !isSeparator(first[-1]) ||
        (last->text != ")" && last->text != ","))
      return false;
    const Token *open = enclosing(call.file, first);
    return open && open != call.file.first &&
           (callees.count(open[-1].text) != 0 || spelling::isOption(open[-1].text));
  };
  const Token *before = call.tokens.first - 1, *after = call.tokens.last;
  if (isPassed(call.tokens.first, after))
    return true;
  if (before - call.file.first < 1 || after == call.file.last || before->text != "=" || after->text != ";")
    return false;
  const std::string_view name = before[-1].text;
  const Variable *variable = finding.madeSite.declared(name, call.where);
  if (!variable || variable->isReference)
    return false;
  int depth = 0;
  for (const Token *token = after; token != call.file.last && depth >= 0; ++token) {
    depth += token->text == "{" ? 1 : token->text == "}" ? -1 : 0;
    if (token->text == name && !isPassed(token, token + 1))
      return false;
  }
  return true;
}

/// Gives the factory call the device: as an argument, or in the place of torch::kCPU or a dtype.
std::optional<Fix> FixPlanner::changeFactory(const Piece &call, const Target &target,
                                             const std::string &description) {
  const spelling::Factory &factory = *factoryOf(call.tokens);
  const std::string &device = target.device;
  const std::vector<TokenRange> arguments = splitArguments({call.tokens.first + 4, call.tokens.last - 1});
  if (arguments.size() == factory.arguments) {
    const std::string_view open = call.text.substr(0, call.text.size() - 1);
    const bool takesOptions = factory.hasDefaultType && !target.options.empty();
    return makeFix(call, fmt::format("{}, {})", open, takesOptions ? target.options : device), description);
  }
  if (arguments.size() != factory.arguments + 1)
    return std::nullopt;
  const std::string_view constant = constantOf(arguments.back());
  const std::optional<Piece> last = partOf(call, arguments.back());
  const bool isCpu = spelling::deviceConstant(constant) == "cpu";
  if (!last || (!isCpu && !spelling::isDtypeConstant(constant)))
    return std::nullopt;
  return makeFix(*last, isCpu ? device : spelling::optionsWith(last->text, device), description);
}

} // namespace devicetidy
