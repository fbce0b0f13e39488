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

/// Of the variables called `name`, the one declared last before `where`.
const Variable *declared(const Finding &finding, std::string_view name, const Location &where) {
  const Variable *result = nullptr;
  for (const Variable &local : finding.site.locals)
    if (local.name.view() == name && local.where.file == where.file && local.where < where)
      result = &local;
  return result;
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

std::optional<Fix> FixPlanner::planMove(const Finding &finding) {
  const PlacedOperand &keptOperand = finding.operands[0], &movedOperand = finding.operands[1];
  const std::optional<Piece> kept = keptPiece(finding), moved = read(movedOperand.where, movedOperand.text);
  if (!movedOperand.isCode || registeringStep(movedOperand) || !kept || !moved || isPointer(*moved) ||
      isNoValue(moved->tokens) || !finding.site.isTensor(moved->where) ||
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

std::optional<FixPlanner::Piece> FixPlanner::keptPiece(const Finding &finding) {
  const PlacedOperand &kept = finding.operands[0];
  if (kept.isCode)
    return read(kept.where, kept.text);
  return kept.module.empty() ? std::nullopt : read(finding.site.receiver, kept.module);
}

std::string FixPlanner::deviceVariable(const Finding &finding) {
  const Step *put = decidingStep(finding.operands[0]);
  if (!put || !put->where.valid())
    return {};
  const std::string_view text = sources.line(put->where.file, put->where.line).value_or("");
  const auto isDevice = [](Name type) { return models::typeKind(type.view()) == "device"; };
  std::set<std::string> found;
  for (const Token &word : tokenize(text)) {
    const std::string name(word.text);
    const Variable *local = declared(finding, name, put->where);
    const auto member = finding.site.members.find(name);
    if (local ? isDevice(local->type) && put->where < finding.where
              : member != finding.site.members.end() && isDevice(member->second))
      found.insert(name);
  }
  return found.size() == 1 ? *found.begin() : std::string();
}

FixPlanner::Target FixPlanner::targetOf(const Finding &finding, const Piece &kept, const Piece &moved) {
  Target target;
  // The tensor behind views, or else the operand itself: `m[i]` is a view of a tensor, but not of a vector.
  for (const std::optional<Piece> &source : {partOf(kept, withoutViews(kept.tokens)), std::optional(kept)})
    if (source && isRepeatable(source->tokens) && finding.site.isTensor(source->where) &&
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
  target.device = deviceVariable(finding);
  if (!target.device.empty())
    return target;
  // Evaluating a call twice could do something twice. Naming the device is right when it is the only one
  // that ever comes here.
  if (finding.level == Level::Definite && finding.callers.empty() && !finding.site.isTemplate)
    target.device = spelling::device(finding.operands[0].device);
  if (target.device.empty() && isModule && isRepeatable(kept.tokens) && isPointer(kept))
    target.device = spelling::deviceOf(spelling::firstParameter(kept.text), ".");
  return target;
}

/// Is `tensor` a variable that was declared with a factory call in the same run of statements as `operation`,
/// with at most a device besides the defaults, and not mentioned since? Its options are those that a factory
/// uses by itself, then, but for the device.
bool FixPlanner::hasDefaultOptions(const Finding &finding, const Piece &tensor, const Token *operation) {
  const Variable *variable =
      tensor.tokens.size() == 1 ? declared(finding, tensor.text, tensor.where) : nullptr;
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
  if (factoryOf(moved.tokens))
    return changeFactory(moved, target);
  const std::optional<Piece> factory = soleFactoryOf(finding, moved);
  return factory ? changeFactory(*factory, target) : std::nullopt;
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
  const Token *end = token + 2;
  while (end != name->file.last && end->text != ";")
    end = end->text == "(" || end->text == "{" ? closing(name->file, end) : end + 1;
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
  const Variable *variable = declared(finding, moved.text, moved.where);
  const Variable *keptRoot = declared(finding, root, moved.where);
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

/// Gives the factory call the device: as an argument, or in the place of torch::kCPU or a dtype.
std::optional<Fix> FixPlanner::changeFactory(const Piece &call, const Target &target) {
  const spelling::Factory &factory = *factoryOf(call.tokens);
  const std::string &device = target.device;
  const std::vector<TokenRange> arguments = splitArguments({call.tokens.first + 4, call.tokens.last - 1});
  const std::string description = fmt::format("make it on the device of '{}'", target.tensor);
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
