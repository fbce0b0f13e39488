//===- FixStatement.cpp - lost results and members left behind -----------===//
#include "analyzer/report/FixPlanner.h"

#include <fmt/format.h>

#include <algorithm>

namespace devicetidy {
namespace {

/// Can a statement begin behind `before`?
bool endsStatement(const Token &before) {
  return before.text == ";" || before.text == "{" || before.text == "}" || before.text == ")" ||
         before.text == ":" || before.text == "," || before.text == "else" || before.text == "do";
}

/// `for (auto x : list)`: is the variable at `name` the copy of an element?
bool isLoopCopy(const Token *name, const Token *end) { return end - name > 1 && name[1].text == ":"; }

/// Of several variables of one name, the one declared last before the finding.
const Variable *localOf(const Finding &finding, std::string_view name) {
  const Variable *result = nullptr;
  for (const Variable &local : finding.site.locals)
    if (local.name.view() == name && local.where < finding.where)
      result = &local;
  return result;
}

bool isConstVariable(const Variable &variable) {
  return variable.isConst || variable.type.view().find("const ") != std::string_view::npos;
}

/// Does the declaration that reaches from `begin` to its name say const? The place of a parameter is its
/// whole declaration, that of another variable its name, before which the type stands.
bool saysConst(TokenRange file, const Token *begin, const Token *name) {
  if (begin == name)
    while (begin != file.first && begin[-1].text != ";" && begin[-1].text != "{" && begin[-1].text != "}" &&
           begin[-1].text != "(")
      --begin;
  return std::any_of(begin, name, [](const Token &token) { return token.text == "const"; });
}

} // namespace

/// `x.to(device);` -> `x = x.to(device);`
std::optional<Fix> FixPlanner::planKeep(const Finding &finding) {
  const Site &site = finding.site;
  const std::optional<Piece> object = read(site.receiver, finding.fields.at("tensor"));
  if (!object || isPointer(*object) || !site.receiverIsTensor || !isRepeatable(object->tokens) ||
      object->tokens.first == object->file.first || !endsStatement(object->tokens.first[-1]))
    return std::nullopt;
  // `x[0] = ...` writes into the tensor x instead of replacing an element.
  const std::optional<Piece> whole = partOf(*object, withoutViews(object->tokens));
  const bool isView = whole && whole->text != object->text && site.isTensor(whole->where);
  // A parameter is registered with its module by its handle; another handle would not be the parameter.
  const std::string_view last = object->tokens.last[-1].text;
  const bool isParameter = object->tokens.size() > 2 && (last == "weight" || last == "bias") &&
                           object->tokens.last[-2].text == "->" && object->tokens[0].text != "this";
  if (isView || isParameter || whole->tokens.empty())
    return std::nullopt;
  const bool isThis = object->tokens[0].text == "this";
  const std::string_view root = rootName(object->tokens);
  if (const Variable *local = isThis ? nullptr : localOf(finding, root)) {
    const std::optional<Piece> name = read(local->where, {});
    const Token *token = name ? name->tokens.first : nullptr;
    while (token && token != name->file.last && token->text != root)
      ++token;
    if (!token || token == name->file.last)
      return std::nullopt;
    const bool isCopy = !local->isReference && isLoopCopy(token, name->file.last);
    if (isConstVariable(*local) || saysConst(name->file, name->tokens.first, token) || isCopy)
      return std::nullopt;
  } else if (site.isConst || site.isLambda || (!isThis && !site.members.count(std::string(root)))) {
    return std::nullopt;
  }
  return makeFix(*object, fmt::format("{0} = {0}", object->text),
                 fmt::format("assign the result to '{}'", object->text));
}

/// The expression that gives `member` its value: of `member = E;`, `member(E)` or `member{E}` around the
/// place of the fix.
std::optional<FixPlanner::Piece> FixPlanner::initialiserOf(const Finding &finding,
                                                           const std::string &member) {
  const std::optional<Piece> made = read(finding.fixAt, {});
  if (!made)
    return std::nullopt;
  const Token *token = made->tokens.first;
  int depth = 0;
  while (token != made->file.first) {
    --token;
    if (token->text == ")" || token->text == "]" || token->text == "}")
      ++depth;
    else if (token->text == "(" || token->text == "[" || token->text == "{")
      --depth;
    const bool isOpen = depth < 0 && token->text != "[";
    if (isOpen && token != made->file.first && token[-1].text == member) {
      const Token *close = closing(made->file, token);
      return close == made->file.last ? std::nullopt : partOf(*made, {token + 1, close});
    }
    if (depth < 0 && token->text == "(")
      depth = 0; // an argument of a call: the call may be the initialiser
    if (depth < 0 || (depth == 0 && token->text == ";"))
      return std::nullopt;
    if (depth == 0 && token->text == "=")
      break;
  }
  if (token->text != "=" || token == made->file.first || token[-1].text != member)
    return std::nullopt;
  const Token *end = token + 1;
  while (end != made->file.last && end->text != ";" && end->text != ",")
    end = end->text == "(" || end->text == "{" || end->text == "[" ? closing(made->file, end) : end + 1;
  return end == made->file.last ? std::nullopt : partOf(*made, {token + 1, end});
}

/// `mean = torch::zeros({3});` -> `mean = register_buffer("mean", torch::zeros({3}));`
std::optional<Fix> FixPlanner::planRegister(const Finding &finding) {
  const std::string &member = finding.fields.at("member"), &className = finding.fields.at("class");
  const bool isModule = finding.fields.at("kind") == "submodule";
  if (!isModule && !finding.site.memberIsTensor)
    return std::nullopt;
  const std::optional<Piece> value = initialiserOf(finding, member);
  if (!value || isNoValue(value->tokens) || splitArguments(value->tokens).size() != 1)
    return std::nullopt;
  const auto has = [&](std::string_view word) { return value->text.find(word) != std::string_view::npos; };
  if (has("register_"))
    return std::nullopt;
  if (isModule) { // the module itself, no options for one
    const Token *open = std::find_if(value->tokens.begin(), value->tokens.end(),
                                     [](const Token &token) { return token.text == "("; });
    const bool isCall = open != value->tokens.end() && open != value->tokens.begin() &&
                        closing(value->tokens, open) == value->tokens.last - 1;
    static constexpr std::string_view suffix = "Options";
    const std::string_view callee = isCall ? open[-1].text : suffix;
    if (callee.size() >= suffix.size() && callee.substr(callee.size() - suffix.size()) == suffix)
      return std::nullopt;
  }
  // A trainable tensor is a parameter. In a class template the base class may depend on the arguments.
  const std::string_view function = isModule               ? "register_module"
                                    : has("requires_grad") ? "register_parameter"
                                                           : "register_buffer";
  const std::string_view object = className.find('<') == std::string::npos ? "" : "this->";
  return makeFix(*value, fmt::format("{}{}(\"{}\", {})", object, function, member, value->text),
                 fmt::format("register '{}'", member));
}

} // namespace devicetidy
