//===- TextReader.cpp - units from text -----------------------------------===//
#include "analyzer/facts/Text.h"
#include "analyzer/facts/TextLine.h"

#include <algorithm>
#include <charconv>

namespace devicetidy {
namespace {

class Reader {
public:
  std::optional<Unit> read(std::string_view text, std::string &error);

private:
  void line(TextLine &line);
  void unitLine(TextLine &line);
  void typeLine(TextLine &line);
  void fieldLine(TextLine &line);
  void globalLine(TextLine &line);
  void functionLine(TextLine &line);
  void localLine(TextLine &line);
  void blockLine(TextLine &line);
  void step(TextLine &line, const std::string &first);
  void fact(TextLine &line, FactKind kind, Reg result);
  void subject(TextLine &line, Fact &fact);
  void terminator(TextLine &line, TerminatorKind kind);
  Operand operand(TextLine &line);
  std::vector<Operand> operands(TextLine &line);
  std::vector<Name> names(TextLine &line);
  std::vector<std::int64_t> numbers(TextLine &line);
  Reg reg(TextLine &line, const std::string &word);
  BlockId blockNumber(TextLine &line, const std::string &word);
  void finishFunction();

  Unit unit;
  Type *type = nullptr;
  Function *function = nullptr;
  Block *block = nullptr;
  bool isTerminated = true;
  Name file;
};

/// A list in brackets, separated by commas; @p each reads one element.
template <typename Each> auto listOf(TextLine &line, const Each &each) {
  std::vector<decltype(each())> result;
  while (!line.take(')')) {
    result.push_back(each());
    line.take(',');
  }
  return result;
}

std::vector<Name> Reader::names(TextLine &line) {
  line.expect('(');
  return listOf(line, [&] { return Name(line.name()); });
}

std::vector<std::int64_t> Reader::numbers(TextLine &line) {
  line.expect('(');
  return listOf(line, [&] { return line.number(); });
}

/// The number in words such as %12 and b3.
template <typename Number> Number numbered(TextLine &line, const std::string &word, char mark) {
  Number value = 0;
  const char *end = word.data() + word.size();
  if (word.size() < 2 || word[0] != mark || std::from_chars(word.data() + 1, end, value).ptr != end ||
      value < 0)
    line.fail(mark == '%' ? "expected a register" : "expected a block");
  return value;
}

Reg Reader::reg(TextLine &line, const std::string &word) {
  if (word == "none")
    return NoReg;
  const Reg value = numbered<Reg>(line, word, '%');
  if (function)
    function->registerCount = std::max(function->registerCount, value + 1);
  return value;
}

BlockId Reader::blockNumber(TextLine &line, const std::string &word) {
  return numbered<BlockId>(line, word, 'b');
}

Operand Reader::operand(TextLine &line) {
  Operand result;
  std::string word = line.name();
  if (word.size() > 1 && word.back() == '~') {
    result.isMoved = true;
    word.pop_back();
  }
  if (word.size() > 1 && word.back() == '!') {
    result.isWritable = true;
    word.pop_back();
  }
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

std::vector<Operand> Reader::operands(TextLine &line) {
  if (!line.take('('))
    return {};
  return listOf(line, [&] { return operand(line); });
}

void Reader::unitLine(TextLine &line) {
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
    } else if (word == "cuda") {
      unit.isCuda = true;
    } else if (const int joining = indexOf(joiningNames, word); joining > 0) {
      unit.joining = static_cast<Joining>(joining);
    } else if (word == "globals") {
      line.expect('=');
      unit.globalInit = Name(line.name());
    } else {
      line.fail("unknown word '" + word + "'");
    }
  }
}

void Reader::typeLine(TextLine &line) {
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
      (word == "project"       ? type->isProject
       : word == "polymorphic" ? type->isPolymorphic
       : word == "abstract"    ? type->isAbstract
                               : type->isLambda) = true;
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

void Reader::fieldLine(TextLine &line) {
  Field field;
  field.name = Name(line.name());
  field.type = Name(line.name());
  while (!line.atEnd()) {
    if (line.peek() == '@') {
      field.where = line.location({});
      continue;
    }
    const std::string word = line.name();
    if (word != "ref" && word != "private")
      line.fail("unknown word '" + word + "'");
    (word == "ref" ? field.isReference : field.isPrivate) = true;
  }
  if (!type)
    line.fail("a field outside a type");
  type->fields.push_back(field);
}

void Reader::globalLine(TextLine &line) {
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

void Reader::functionLine(TextLine &line) {
  finishFunction();
  Name id(line.name());
  function = &unit.functions[id];
  function->id = function->name = id;
  static const std::pair<const char *, bool Function::*> flags[] = {{"ref", &Function::resultIsReference},
                                                                    {"constructor", &Function::isConstructor},
                                                                    {"destructor", &Function::isDestructor},
                                                                    {"static", &Function::isStatic},
                                                                    {"const", &Function::isConst},
                                                                    {"virtual", &Function::isVirtual},
                                                                    {"lambda", &Function::isLambda},
                                                                    {"main", &Function::isMain},
                                                                    {"model", &Function::isModel},
                                                                    {"variadic", &Function::isVariadicTail},
                                                                    {"body", &Function::hasBody},
                                                                    {"private", &Function::isPrivate}};
  bool hasRequired = false;
  while (!line.atEnd()) {
    if (line.peek() == '@') {
      function->where = line.location({});
      continue;
    }
    std::string word = line.name();
    auto flag = std::find_if(std::begin(flags), std::end(flags),
                             [&](const auto &entry) { return word == entry.first; });
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

void Reader::localLine(TextLine &line) {
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

void Reader::blockLine(TextLine &line) {
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
    } else {
      line.fail("unknown word '" + word + "'");
    }
  }
}

void Reader::subject(TextLine &line, Fact &fact) {
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

void Reader::fact(TextLine &line, FactKind kind, Reg result) {
  Fact fact;
  fact.kind = kind;
  fact.result = result;
  subject(line, fact);
  fact.operands = operands(line);
  using Flag = std::pair<const char *, bool Fact::*>;
  static const Flag flags[] = {{"object", &Fact::hasObject},
                               {"virtual", &Fact::isVirtual},
                               {"indirect", &Fact::isIndirect},
                               {"address", &Fact::resultIsAddress},
                               {"discarded", &Fact::isDiscarded},
                               {"macro", &Fact::inMacro},
                               {"macroargument", &Fact::inMacroArgument},
                               {"assignable", &Fact::isObjectAssignable},
                               {"pointee", &Fact::isObjectPointee},
                               {"launch", &Fact::isLaunch}};
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
    auto flag = std::find_if(std::begin(flags), std::end(flags),
                             [&](const auto &entry) { return word == entry.first; });
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

void Reader::terminator(TextLine &line, TerminatorKind kind) {
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

void Reader::step(TextLine &line, const std::string &first) {
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

void Reader::line(TextLine &line) {
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
  if (word == "object")
    unit.objects.push_back(Name(line.name()));
  else if (word == "import")
    unit.imports.push_back(Name(line.name()));
  else if (word == "error")
    unit.parseErrors.push_back(line.name());
  else if (word == "file")
    unit.files.push_back(Name(line.name()));
  else if (word == "skipped")
    unit.skippedFunctions.push_back(Name(line.name()));
  else if (word == "uninstantiated")
    unit.uninstantiated.push_back(Name(line.name()));
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
      TextLine current(text.substr(0, end), error);
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
