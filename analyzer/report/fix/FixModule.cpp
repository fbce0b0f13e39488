//===- FixModule.cpp - models that nobody moved, or moved too early ------===//
#include "analyzer/report/fix/FixPlanner.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Spelling.h"

#include <fmt/format.h>

#include <algorithm>

namespace devicetidy {
namespace {

namespace spelling = models::spelling;

/// Is `part` the beginning of `whole`: `net` of `net->head`?
bool beginsWith(TokenRange whole, TokenRange part) {
  const auto same = [](const Token &a, const Token &b) { return a.text == b.text; };
  return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin(), same) &&
         (part.size() == whole.size() || whole[part.size()].kind == TokenKind::Punctuation);
}

/// Where `expression` stands last from `first` to `last`, in this block or one in it, before `next` and what
/// `next` says; null when it does not.
template <class Next>
const Token *lastUse(TokenRange expression, const Token *first, const Token *last, Next isNext) {
  const auto same = [](const Token &a, const Token &b) { return a.text == b.text; };
  const Token *found = nullptr;
  int depth = 0;
  for (const Token *token = first;
       last - token > static_cast<std::ptrdiff_t>(expression.size()) + 2 && depth >= 0; ++token) {
    depth += token->text == "{" ? 1 : token->text == "}" ? -1 : 0;
    if (std::equal(expression.begin(), expression.end(), token, same) && isNext(token + expression.size()))
      found = token;
  }
  return found;
}

/// `net->head` of `net->head->to`, where `method` is the last name; empty when the object is no such chain.
TokenRange objectOf(TokenRange file, const Token *method) {
  const auto isAccess = [](const Token &token) { return token.text == "->" || token.text == "."; };
  TokenRange object{method, method};
  for (const Token *part = method; part - file.first >= 2 && isAccess(part[-1]);) {
    part -= 2;
    while (part->text == "]" && enclosing(file, part) && enclosing(file, part) != file.first)
      part = enclosing(file, part) - 1;
    if (!isRepeatable({part, method - 1}))
      break;
    object = {part, method - 1};
  }
  return object;
}

/// Was the module, a part of what is declared at `declared`, made when that was, and not later?
bool isMadeBefore(const PlacedOperand &module, const Location &declared, const Location &use) {
  const Step *made = decidingStep(module);
  return made && (made->where.file != use.file || made->where < declared || use < made->where);
}

/// Does the code from `first` to `last` give a new value to something that `expression` names?
bool isChanged(TokenRange expression, const Token *first, const Token *last) {
  for (const Token *token = first; token < last; ++token)
    if (token[1].text == "=" && std::any_of(expression.begin(), expression.end(), [&](const Token &each) {
          return each.kind == TokenKind::Identifier && each.text == token->text;
        }))
      return true;
  return false;
}

} // namespace

std::optional<Fix> FixPlanner::planModuleMove(const Finding &finding) {
  const UsedModule used = usedModule(finding);
  if (finding.moduleSite.inMacro || finding.moduleSite.isTemplate || registeringStep(finding.operands[1]))
    return std::nullopt;
  if (std::optional<Fix> fix = planMoveAtDeclaration(finding, used))
    return fix;
  return planMoveBeside(finding, used);
}

/// `Net net;` -> `Net net;` and `net->to(device);` in the next line.
std::optional<Fix> FixPlanner::planMoveAtDeclaration(const Finding &finding, const UsedModule &used) {
  const CodeSite &site = finding.moduleSite;
  const std::optional<Piece> object = read(site.receiver, used.name);
  if (!object || !isRepeatable(object->tokens))
    return std::nullopt;
  const Variable *module = site.declared(rootName(object->tokens), used.where);
  const std::optional<Piece> name = module ? read(module->where, {}) : std::nullopt;
  if (!name)
    return std::nullopt;
  std::string device = deviceVariable(finding.operands[0], site, used.where);
  if (device.empty() && finding.level == Level::Definite && saysDevice(finding.operands[0]))
    device = spelling::device(finding.operands[0].device);
  const Variable *variable = site.declared(device, used.where);
  const bool isLater = variable && module->where < variable->where;
  const std::optional<Piece> last = isLater ? read(variable->where, {}) : name;
  if (device.empty() || !last)
    return std::nullopt;
  // Behind the later of the two declarations and what gives it its value, in a block that the use is in, too.
  const auto assigns = [](const Token *next) { return next->text == "="; };
  const Token *first = name->tokens.first, *use = object->tokens.first;
  const Token *end = statementEnd(last->file, last->tokens.first);
  if (const Token *assigned = lastUse(object->tokens, end, use, assigns)) {
    first = assigned;
    end = statementEnd(last->file, assigned);
  } else if (object->tokens.size() > 1 && !isMadeBefore(finding.operands[1], module->where, used.where)) {
    return std::nullopt;
  }
  if (!isInBlockOf(first, end, use))
    return std::nullopt;
  const bool isValue = object->tokens.last->text == ".";
  const std::string move =
      spelling::moduleMove(used.name + (isValue ? "." : "->"), "to", fmt::format("({})", device));
  return move.empty() ? std::nullopt : putBehind(*last, end, move + ";", fmt::format("move '{}'", used.name));
}

/// `actor->to(device);` -> the same, and `critic->to(device);` in the next line.
std::optional<Fix> FixPlanner::planMoveBeside(const Finding &finding, const UsedModule &used) {
  const CodeSite &site = finding.moduleSite, &there = finding.keptSite;
  const std::optional<Piece> object = read(site.receiver, used.name);
  const std::optional<ModuleMove> move = moveOf(finding);
  if (!object || !isRepeatable(object->tokens) || !move)
    return std::nullopt;
  const Location &where = move->call.where;
  const std::string name(rootName(object->tokens)), sibling(rootName(move->object.tokens));
  const Variable *local = site.declared(name, used.where);
  const bool isLocal = local && local == site.declared(name, where) && site.function == there.function &&
                       isInBlockOf(move->first, move->end, object->tokens.first);
  const bool isMember = !local && !there.declared(name, where) && !there.declared(sibling, where) &&
                        there.members.count(name) && there.members.count(sibling) &&
                        there.members == site.members;
  if (!isMember && !isLocal)
    return std::nullopt;
  const std::string_view access = object->tokens.last->text == "." ? "." : "->";
  return putBehind(move->call, move->end, fmt::format("{}{}{};", used.name, access, move->call.text),
                   fmt::format("move '{}'", used.name));
}

/// `net->push_back(head);` -> the same, and in the next line the `net->to(device);` that stands before it.
std::optional<Fix> FixPlanner::planMoveAgain(const Finding &finding, const Step &registered) {
  const CodeSite &site = finding.madeSite;
  const std::optional<Piece> call = read(registered.where, {});
  if (!call || site.inMacro || site.isTemplate)
    return std::nullopt;
  // It is registered in the block with the move, or in a method that is called there.
  std::optional<ModuleMove> move = moveBefore(*call);
  const bool isHere = move.has_value();
  const std::string_view method = isHere ? call->tokens[0].text : lastPart(site.function);
  if (!isHere)
    move = moveOf(finding);
  if (!move)
    return std::nullopt;
  const TokenRange object = isHere ? objectOf(call->file, call->tokens.first) : move->object.tokens;
  const auto calls = [&](const Token *next) { return next[1].text == method && next[2].text == "("; };
  const Token *last = lastUse(object, move->end, move->call.file.last, calls);
  const Token *end = last ? statementEnd(move->call.file, last) : move->call.file.last;
  if (end == move->call.file.last || isChanged(move->call.tokens, move->end, end))
    return std::nullopt;
  const std::string_view access = move->call.tokens.first[-1].text;
  return putBehind(move->call, end, fmt::format("{}{}{};", move->object.text, access, move->call.text),
                   fmt::format("move '{}' again", move->object.text));
}

/// The move that put what stays on its device.
std::optional<FixPlanner::ModuleMove> FixPlanner::moveOf(const Finding &finding) {
  const Step *put = decidingStep(finding.operands[0]);
  if (!put || put->kind != StepKind::ModuleMoved || finding.keptSite.inMacro || finding.keptSite.isTemplate)
    return std::nullopt;
  const std::optional<Piece> call = read(put->where, {});
  return call ? moveAt(*call) : std::nullopt;
}

std::optional<FixPlanner::ModuleMove> FixPlanner::moveAt(const Piece &call) {
  const TokenRange object = objectOf(call.file, call.tokens.first);
  const Token *first = statementStart(call.file, call.tokens.first), *end = call.tokens.last;
  const std::optional<Piece> piece = object.first == first ? partOf(call, object) : std::nullopt;
  if (!piece || end == call.file.last || end->text != ";")
    return std::nullopt;
  return ModuleMove{*piece, call, first, end};
}

std::optional<FixPlanner::ModuleMove> FixPlanner::moveBefore(const Piece &registering) {
  const TokenRange object = objectOf(registering.file, registering.tokens.first);
  for (const Token *token = object.first; token != registering.file.first; --token) {
    if (!spelling::isMove(token->text) || token[1].text != "(")
      continue;
    const Token *close = closing(registering.file, token + 1);
    const std::optional<Piece> call =
        close == registering.file.last ? std::nullopt : partOf(registering, {token, close + 1});
    const std::optional<ModuleMove> move = call ? moveAt(*call) : std::nullopt;
    if (move && beginsWith(object, move->object.tokens) && isInBlockOf(move->first, move->end, object.first))
      return move;
  }
  return std::nullopt;
}

std::optional<Fix> FixPlanner::putBehind(const Piece &piece, const Token *end, const std::string &statement,
                                         std::string description) {
  const std::optional<Piece> semicolon =
      end == piece.file.last ? std::nullopt : readPart(piece.where.file, end->begin, end->end);
  if (!semicolon || semicolon->text != ";")
    return std::nullopt;
  const std::string_view line = sources.line(semicolon->where.file, semicolon->where.line).value_or("");
  const std::string_view indent = line.substr(0, line.find_first_not_of(" \t"));
  return makeFix(*semicolon, fmt::format(";\n{}{}", indent, statement), std::move(description));
}

} // namespace devicetidy
