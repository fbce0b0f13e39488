//===- TextReader.cpp - units from text -----------------------------------===//
#include "analyzer/facts/Text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <stdexcept>

namespace devicetidy {
namespace {

struct BadText : std::exception {};

/// Takes one line apart.
class Line {
public:
  Line(std::string_view text, std::string &error) : text(text), error(error) { skipBlanks(); }

  bool atEnd() const { return position >= text.size(); }
  char peek() const { return atEnd() ? '\0' : text[position]; }

  [[noreturn]] void fail(const std::string &reason) const {
    error = reason + " at column " + std::to_string(position + 1);
    throw BadText();
  }

  bool take(char c) {
    if (peek() != c)
      return false;
    ++position;
    skipBlanks();
    return true;
  }

  void expect(char c) {
    if (!take(c))
      fail(std::string("expected '") + c + "'");
  }

  /// A bare or quoted name.
  std::string name() {
    std::string result = peek() == '"' ? quoted() : bare();
    skipBlanks();
    return result;
  }

  std::int64_t number() {
    std::int64_t value = 0;
    auto [end, status] = std::from_chars(text.data() + position, text.data() + text.size(), value);
    if (status != std::errc())
      fail("expected a number");
    position = static_cast<std::size_t>(end - text.data());
    skipBlanks();
    return value;
  }

  Location location(Name file) {
    expect('@');
    Location where;
    where.file = file;
    std::string written = peek() == '"' ? quoted() + bare() : bare();
    skipBlanks();
    std::size_t dash = written.rfind('-');
    std::size_t column = written.rfind(':', dash);
    if (dash == std::string::npos || column == std::string::npos)
      fail("expected @line:column-end");
    std::size_t line = column ? written.rfind(':', column - 1) : std::string::npos;
    std::size_t lineStart = line == std::string::npos ? 0 : line + 1;
    where.line = part(written.substr(lineStart, column - lineStart));
    where.column = part(written.substr(column + 1, dash - column - 1));
    if (line != std::string::npos)
      where.file = Name(written.substr(0, line));
    std::string end = written.substr(dash + 1);
    std::size_t split = end.find(':');
    where.endLine = split == std::string::npos ? where.line : part(end.substr(0, split));
    where.endColumn = part(split == std::string::npos ? end : end.substr(split + 1));
    return where;
  }

private:
  void skipBlanks() {
    while (!atEnd() && (text[position] == ' ' || text[position] == '\t' || text[position] == '\r'))
      ++position;
  }

  std::uint32_t part(const std::string &digits) const {
    std::uint32_t value = 0;
    auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (status != std::errc() || end != digits.data() + digits.size())
      fail("expected @line:column-end");
    return value;
  }

  std::string bare() {
    std::size_t start = position;
    while (!atEnd() && !std::strchr(" \t\r\"(),=", text[position]))
      ++position;
    if (start == position)
      fail("expected a name");
    return std::string(text.substr(start, position - start));
  }

  std::string quoted() {
    std::string result;
    for (++position; !atEnd() && text[position] != '"'; ++position) {
      char c = text[position];
      if (c == '\\') {
        if (++position >= text.size())
          break;
        c = text[position];
        if (c == 'n')
          c = '\n';
        else if (c == 'x')
          c = hexadecimal();
      }
      result += c;
    }
    if (atEnd())
      fail("a quoted name does not end");
    ++position;
    return result;
  }

  char hexadecimal() {
    int value = 0;
    if (position + 2 >= text.size() ||
        std::from_chars(text.data() + position + 1, text.data() + position + 3, value, 16).ptr !=
            text.data() + position + 3)
      fail("expected two hexadecimal digits");
    position += 2;
    return static_cast<char>(value);
  }

  std::string_view text;
  std::size_t position = 0;
  std::string &error;
};

template <std::size_t N> int indexOf(const std::array<const char *, N> &names, const std::string &name) {
  auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

constexpr std::array<const char *, 18> factNames = {
    "literal", "local",   "global",   "this",      "field",   "element",  "load",   "store",       "call",
    "construct", "new",   "closure",  "operator",  "aggregate", "declare", "endscope", "opaque",   "endstatement"};
constexpr std::array<const char *, 7> literalNames = {"none", "bool", "int", "float", "string", "null", "enum"};
constexpr std::array<const char *, 10> typeNames = {"void",    "bool",  "int",    "float",    "enum",
                                                    "pointer", "array", "record", "function", "other"};
constexpr std::array<const char *, 5> terminatorNames = {"jump", "branch", "switch", "return", "unreachable"};

class Reader {
public:
  std::optional<Unit> read(std::string_view text, std::string &error);

private:
  void line(Line &line);
  void unitLine(Line &line);
  void typeLine(Line &line);
  void fieldLine(Line &line);
  void globalLine(Line &line);
  void functionLine(Line &line);
  void localLine(Line &line);
  void blockLine(Line &line);
  void step(Line &line, const std::string &first);
  void fact(Line &line, FactKind kind, Reg result);
  void subject(Line &line, Fact &fact);
  void terminator(Line &line, TerminatorKind kind);
  Operand operand(Line &line);
  std::vector<Operand> operands(Line &line);
  std::vector<Name> names(Line &line);
  std::vector<std::int64_t> numbers(Line &line);
  Reg reg(Line &line, const std::string &word);
  BlockId blockNumber(Line &line, const std::string &word);
  void finishFunction();

  Unit unit;
  Type *type = nullptr;
  Function *function = nullptr;
  Block *block = nullptr;
  bool isTerminated = true;
  Name file;
};

std::vector<Name> Reader::names(Line &line) {
  std::vector<Name> result;
  line.expect('(');
  while (!line.take(')')) {
    result.push_back(Name(line.name()));
    line.take(',');
  }
  return result;
}

std::vector<std::int64_t> Reader::numbers(Line &line) {
  std::vector<std::int64_t> result;
  line.expect('(');
  while (!line.take(')')) {
    result.push_back(line.number());
    line.take(',');
  }
  return result;
}

Reg Reader::reg(Line &line, const std::string &word) {
  if (word == "none")
    return NoReg;
  Reg value = 0;
  if (word.size() < 2 || word[0] != '%' ||
      std::from_chars(word.data() + 1, word.data() + word.size(), value).ptr != word.data() + word.size() || value < 0)
    line.fail("expected a register");
  if (function)
    function->registerCount = std::max(function->registerCount, value + 1);
  return value;
}

BlockId Reader::blockNumber(Line &line, const std::string &word) {
  BlockId value = 0;
  if (word.size() < 2 || word[0] != 'b' ||
      std::from_chars(word.data() + 1, word.data() + word.size(), value).ptr != word.data() + word.size() || value < 0)
    line.fail("expected a block");
  return value;
}

Operand Reader::operand(Line &line) {
  Operand result;
  std::string word = line.name();
  if (word.size() > 1 && word.back() == '&') {
    result.isAddress = true;
    word.pop_back();
  }
  result.reg = reg(line, word);
  while (!line.atEnd() && line.peek() != ',' && line.peek() != ')') {
    if (line.peek() == '@') {
      result.where = line.location(file);
      continue;
    }
    Name next(line.name());
    if (next == Name("text") && line.take('='))
      result.text = Name(line.name());
    else
      result.type = next;
  }
  return result;
}

std::vector<Operand> Reader::operands(Line &line) {
  std::vector<Operand> result;
  if (!line.take('('))
    return result;
  while (!line.take(')')) {
    result.push_back(operand(line));
    line.take(',');
  }
  return result;
}

void Reader::unitLine(Line &line) {
  unit.mainFile = Name(line.name());
  while (!line.atEnd()) {
    std::string word = line.name();
    if (word == "torch") {
      std::string version = line.name();
      std::size_t dot = version.find('.');
      std::from_chars(version.data(), version.data() + version.size(), unit.torchMajor);
      if (dot != std::string::npos)
        std::from_chars(version.data() + dot + 1, version.data() + version.size(), unit.torchMinor);
    } else if (word == "fatal") {
      unit.hasFatalError = true;
    } else if (word == "globals") {
      line.expect('=');
      unit.globalInit = Name(line.name());
    } else {
      line.fail("unknown word '" + word + "'");
    }
  }
}

void Reader::typeLine(Line &line) {
  Name id(line.name());
  type = &unit.types[id];
  type->id = id;
  int kind = indexOf(typeNames, line.name());
  if (kind < 0)
    line.fail("unknown kind of type");
  type->kind = static_cast<TypeKind>(kind);
  while (!line.atEnd()) {
    if (line.peek() == '@') {
      type->where = line.location({});
      continue;
    }
    std::string word = line.name();
    if (word == "project" || word == "polymorphic" || word == "abstract" || word == "lambda") {
      (word == "project" ? type->isProject : word == "polymorphic" ? type->isPolymorphic
       : word == "abstract" ? type->isAbstract : type->isLambda) = true;
      continue;
    }
    line.expect('=');
    if (word == "template")
      type->templateName = Name(line.name());
    else if (word == "pointee")
      type->pointee = Name(line.name());
    else if (word == "args")
      type->args = names(line);
    else if (word == "numbers")
      type->numbers = numbers(line);
    else if (word == "bases")
      type->bases = names(line);
    else if (word == "constructors")
      type->constructors = names(line);
    else if (word == "methods")
      type->methods = names(line);
    else
      line.fail("unknown word '" + word + "'");
  }
  if (type->kind == TypeKind::Record && type->templateName.empty())
    type->templateName = Name(id.str().substr(0, id.str().find('<')));
}

void Reader::fieldLine(Line &line) {
  Field field;
  field.name = Name(line.name());
  field.type = Name(line.name());
  while (!line.atEnd()) {
    if (line.peek() == '@')
      field.where = line.location({});
    else if (line.name() == "ref")
      field.isReference = true;
    else
      line.fail("unknown word");
  }
  if (!type)
    line.fail("a field outside a type");
  type->fields.push_back(field);
}

void Reader::globalLine(Line &line) {
  Name id(line.name());
  Global &global = unit.globals[id];
  global.id = global.name = id;
  while (!line.atEnd()) {
    if (line.peek() == '@') {
      global.where = line.location({});
      continue;
    }
    std::string word = line.name();
    if (word == "const")
      global.isConst = true;
    else if (word == "name" && line.take('='))
      global.name = Name(line.name());
    else if (word == "type" && line.take('='))
      global.type = Name(line.name());
    else
      line.fail("unknown word '" + word + "'");
  }
}

void Reader::functionLine(Line &line) {
  finishFunction();
  Name id(line.name());
  function = &unit.functions[id];
  function->id = function->name = id;
  static const std::pair<const char *, bool Function::*> flags[] = {
      {"ref", &Function::resultIsReference}, {"constructor", &Function::isConstructor},
      {"destructor", &Function::isDestructor}, {"static", &Function::isStatic},
      {"const", &Function::isConst},         {"virtual", &Function::isVirtual},
      {"lambda", &Function::isLambda},       {"main", &Function::isMain},
      {"variadic", &Function::isVariadicTail}, {"body", &Function::hasBody}};
  bool hasRequired = false;
  while (!line.atEnd()) {
    if (line.peek() == '@') {
      function->where = line.location({});
      continue;
    }
    std::string word = line.name();
    auto flag = std::find_if(std::begin(flags), std::end(flags), [&](const auto &entry) { return word == entry.first; });
    if (flag != std::end(flags)) {
      function->*flag->second = true;
      continue;
    }
    line.expect('=');
    if (word == "name")
      function->name = Name(line.name());
    else if (word == "class")
      function->className = Name(line.name());
    else if (word == "result")
      function->resultType = Name(line.name());
    else if (word == "params")
      function->paramCount = static_cast<std::uint32_t>(line.number());
    else if (word == "required") {
      function->requiredParams = static_cast<std::uint32_t>(line.number());
      hasRequired = true;
    } else if (word == "registers")
      function->registerCount = static_cast<Reg>(line.number());
    else if (word == "overrides")
      function->overrides = names(line);
    else
      line.fail("unknown word '" + word + "'");
  }
  if (!hasRequired)
    function->requiredParams = function->paramCount;
  file = function->where.file;
}

void Reader::localLine(Line &line) {
  if (!function)
    line.fail("a local outside a function");
  if (line.number() != static_cast<std::int64_t>(function->locals.size()))
    line.fail("locals are numbered from 0");
  Variable variable;
  variable.name = Name(line.name());
  variable.type = Name(line.name());
  while (!line.atEnd()) {
    if (line.peek() == '@')
      variable.where = line.location(file);
    else if (line.name() == "ref")
      variable.isReference = true;
    else
      line.fail("unknown word");
  }
  function->locals.push_back(variable);
}

void Reader::blockLine(Line &line) {
  if (!function)
    line.fail("a block outside a function");
  if (!isTerminated)
    line.fail("the block before has no end");
  if (line.number() != static_cast<std::int64_t>(function->blocks.size()))
    line.fail("blocks are numbered from 0");
  function->blocks.emplace_back();
  function->hasBody = true;
  isTerminated = false;
  block = &function->blocks.back();
  while (!line.atEnd()) {
    std::string word = line.name();
    if (word == "loop") {
      block->isLoopHead = true;
      continue;
    }
    line.expect('=');
    if (word == "handler") {
      block->handler = blockNumber(line, line.name());
    } else if (word == "varies") {
      for (std::int64_t local : numbers(line))
        block->variesInLoop.push_back(static_cast<std::int32_t>(local));
    } else if (word == "trips") {
      block->tripCount = line.number();
    } else {
      line.fail("unknown word '" + word + "'");
    }
  }
}

void Reader::subject(Line &line, Fact &fact) {
  switch (fact.kind) {
  case FactKind::Literal: {
    int kind = indexOf(literalNames, line.name());
    if (kind < 0)
      line.fail("unknown kind of literal");
    fact.literal = static_cast<LiteralKind>(kind);
    if (fact.literal == LiteralKind::String || fact.literal == LiteralKind::Float)
      fact.name = Name(line.name());
    else if (fact.literal != LiteralKind::Null)
      fact.number = line.number();
    return;
  }
  case FactKind::Local:
  case FactKind::Declare:
  case FactKind::EndScope:
    fact.number = line.number();
    return;
  case FactKind::Global:
  case FactKind::Field:
  case FactKind::Call:
  case FactKind::Construct:
  case FactKind::Closure:
  case FactKind::Operator:
    if (!line.atEnd() && line.peek() != '(') {
      std::string word = line.name();
      if (word != ":") {
        fact.name = Name(word);
        return;
      }
      fact.type = Name(line.name());
    }
    return;
  default:
    return;
  }
}

void Reader::fact(Line &line, FactKind kind, Reg result) {
  Fact fact;
  fact.kind = kind;
  fact.result = result;
  subject(line, fact);
  fact.operands = operands(line);
  static const std::pair<const char *, bool Fact::*> flags[] = {
      {"object", &Fact::hasObject},         {"virtual", &Fact::isVirtual},     {"indirect", &Fact::isIndirect},
      {"address", &Fact::resultIsAddress}, {"discarded", &Fact::isDiscarded}, {"macro", &Fact::inMacro}};
  while (!line.atEnd()) {
    if (line.peek() == '@') {
      fact.where = line.location(file);
      continue;
    }
    std::string word = line.name();
    if (word == ":") {
      fact.type = Name(line.name());
      continue;
    }
    auto flag = std::find_if(std::begin(flags), std::end(flags), [&](const auto &entry) { return word == entry.first; });
    if (flag != std::end(flags)) {
      fact.*flag->second = true;
      continue;
    }
    line.expect('=');
    if (word == "target")
      fact.target = Name(line.name());
    else if (word == "captures")
      fact.captures = names(line);
    else if (word == "templates")
      fact.templateTypes = names(line);
    else if (word == "numbers")
      fact.templateNumbers = numbers(line);
    else
      line.fail("unknown word '" + word + "'");
  }
  block->facts.push_back(std::move(fact));
}

void Reader::terminator(Line &line, TerminatorKind kind) {
  Terminator &end = block->terminator;
  end.kind = kind;
  isTerminated = true;
  std::vector<Operand> values = operands(line);
  if (!values.empty())
    end.value = values.front();
  while (!line.atEnd()) {
    if (line.peek() == '@') {
      end.where = line.location(file);
      continue;
    }
    std::string word = line.name();
    line.take(',');
    if (word == "enters") {
      end.entersLoop = true;
      continue;
    }
    std::size_t colon = word.find(':');
    if (colon != std::string::npos) {
      std::int64_t value = 0;
      std::from_chars(word.data(), word.data() + colon, value);
      end.cases.push_back(value);
      word = word.substr(colon + 1);
    }
    end.successors.push_back(blockNumber(line, word));
  }
}

void Reader::step(Line &line, const std::string &first) {
  if (!function || !block || isTerminated)
    line.fail("a step outside a block");
  std::string word = first;
  Reg result = NoReg;
  if (word[0] == '%') {
    result = reg(line, word);
    line.expect('=');
    word = line.name();
  }
  if (int kind = indexOf(factNames, word); kind >= 0)
    return fact(line, static_cast<FactKind>(kind), result);
  if (int kind = indexOf(terminatorNames, word); kind >= 0)
    return terminator(line, static_cast<TerminatorKind>(kind));
  line.fail("unknown step '" + word + "'");
}

void Reader::finishFunction() {
  block = nullptr;
  type = nullptr;
}

void Reader::line(Line &line) {
  std::string word = line.name();
  if (word == "unit")
    return unitLine(line);
  if (word == "type")
    return typeLine(line);
  if (word == "field")
    return fieldLine(line);
  if (word == "global" && !block)
    return globalLine(line);
  if (word == "function")
    return functionLine(line);
  if (word == "local" && !block)
    return localLine(line);
  if (word == "block")
    return blockLine(line);
  if (word == "error")
    unit.parseErrors.push_back(line.name());
  else if (word == "file")
    unit.files.push_back(Name(line.name()));
  else if (word == "skipped")
    unit.skippedFunctions.push_back(Name(line.name()));
  else if (word == "opaque" && !block) {
    Name kind(line.name());
    unit.opaqueExpressions[kind] = static_cast<std::uint32_t>(line.number());
  } else
    step(line, word);
}

std::optional<Unit> Reader::read(std::string_view text, std::string &error) {
  std::size_t number = 0;
  try {
    while (!text.empty()) {
      ++number;
      std::size_t end = text.find('\n');
      Line current(text.substr(0, end), error);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      if (!current.atEnd() && current.peek() != '#')
        line(current);
    }
  } catch (const BadText &) {
    error = "line " + std::to_string(number) + ": " + error;
    return std::nullopt;
  }
  return std::move(unit);
}

} // namespace

std::optional<Unit> readText(std::string_view text, std::string &error) { return Reader().read(text, error); }

} // namespace devicetidy
