#include "analyzer/facts/Text.h"
#include "analyzer/facts/TextLine.h"

#include <cctype>
#include <cstring>

namespace devicetidy {
namespace {

bool isBare(const std::string &text) {
  if (text.empty() || text[0] == '%' || text[0] == '@' || text[0] == '#')
    return false;
  for (char c : text)
    if (!std::isalnum(static_cast<unsigned char>(c)) && !std::strchr("_:~@#./$&*<>+-!|^%?", c))
      return false;
  return true;
}

class Writer {
public:
  explicit Writer(const Unit &unit) : unit(unit) {}
  std::string write();

private:
  void add(const char *text) { out += text; }
  void add(const std::string &text) { out += text; }
  void name(Name text);
  void names(const char *key, const std::vector<Name> &list);
  void numbers(const char *key, const std::vector<std::int64_t> &list);
  void attribute(const char *key, Name value);
  void attribute(const char *key, std::int64_t value) {
    out += std::string(" ") + key + "=" + std::to_string(value);
  }
  void flag(const char *text, bool value) { out += value ? std::string(" ") + text : ""; }
  void location(const Location &where);
  void operand(const Operand &operand);
  void operands(const std::vector<Operand> &list);
  void type(const Type &type);
  void function(const Function &function);
  void block(const Function &function, std::size_t index);
  void fact(const Fact &fact);
  void subject(const Fact &fact);
  void terminator(const Terminator &terminator);

  const Unit &unit;
  std::string out;
  Name file; ///< locations in this file are written without it
};

void Writer::name(Name text) {
  if (isBare(text.str())) {
    out += text.str();
    return;
  }
  out += '"';
  for (char c : text.str()) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7f) {
      const char *digits = "0123456789abcdef";
      out += "\\x";
      out += digits[static_cast<unsigned char>(c) >> 4];
      out += digits[c & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

void Writer::names(const char *key, const std::vector<Name> &list) {
  if (list.empty())
    return;
  out += std::string(" ") + key + "=(";
  for (std::size_t i = 0; i < list.size(); ++i) {
    add(i ? ", " : "");
    name(list[i]);
  }
  out += ")";
}

void Writer::numbers(const char *key, const std::vector<std::int64_t> &list) {
  if (list.empty())
    return;
  out += std::string(" ") + key + "=(";
  for (std::size_t i = 0; i < list.size(); ++i)
    out += (i ? ", " : "") + std::to_string(list[i]);
  out += ")";
}

void Writer::attribute(const char *key, Name value) {
  if (value.empty())
    return;
  out += std::string(" ") + key + "=";
  name(value);
}

void Writer::location(const Location &where) {
  if (!where.valid())
    return;
  out += " @";
  if (where.file != file) {
    name(where.file);
    out += ":";
  }
  out += std::to_string(where.line) + ":" + std::to_string(where.column) + "-";
  if (where.endLine != where.line)
    out += std::to_string(where.endLine) + ":";
  out += std::to_string(where.endColumn);
}

void Writer::operand(const Operand &operand) {
  out += operand.reg == NoReg ? std::string("none") : "%" + std::to_string(operand.reg);
  if (operand.isAddress)
    out += "&";
  if (operand.isWritable)
    out += "!";
  if (operand.isMoved)
    out += "~";
  if (!operand.type.empty()) {
    out += " ";
    name(operand.type);
  }
  if (!operand.text.empty()) {
    out += " text=";
    name(operand.text);
  }
  location(operand.where);
}

void Writer::operands(const std::vector<Operand> &list) {
  if (list.empty())
    return;
  out += " (";
  for (std::size_t i = 0; i < list.size(); ++i) {
    add(i ? ", " : "");
    operand(list[i]);
  }
  out += ")";
}

void Writer::type(const Type &type) {
  out += "type ";
  name(type.id);
  out += std::string(" ") + typeNames[static_cast<int>(type.kind)];
  attribute("template", type.templateName);
  names("args", type.args);
  numbers("numbers", type.numbers);
  attribute("pointee", type.pointee);
  flag("project", type.isProject);
  flag("polymorphic", type.isPolymorphic);
  flag("abstract", type.isAbstract);
  flag("lambda", type.isLambda);
  names("bases", type.bases);
  names("constructors", type.constructors);
  names("methods", type.methods);
  location(type.where);
  out += "\n";
  for (const Field &field : type.fields) {
    out += "  field ";
    name(field.name);
    out += " ";
    name(field.type);
    flag("ref", field.isReference);
    flag("private", field.isPrivate);
    location(field.where);
    out += "\n";
  }
}

void Writer::subject(const Fact &fact) {
  switch (fact.kind) {
  case FactKind::Literal:
    out += std::string(" ") + literalNames[static_cast<int>(fact.literal)];
    if (fact.literal == LiteralKind::String || fact.literal == LiteralKind::Float) {
      out += " ";
      name(fact.name);
    } else if (fact.literal != LiteralKind::Null) {
      out += " " + std::to_string(fact.number);
    }
    return;
  case FactKind::Local:
  case FactKind::Declare:
  case FactKind::EndScope:
    out += " " + std::to_string(fact.number);
    return;
  default:
    if (!fact.name.empty()) {
      out += " ";
      name(fact.name);
    }
  }
}

void Writer::fact(const Fact &fact) {
  out += "    ";
  if (fact.result != NoReg)
    out += "%" + std::to_string(fact.result) + " = ";
  out += factNames[static_cast<int>(fact.kind)];
  subject(fact);
  operands(fact.operands);
  if (!fact.type.empty()) {
    out += " : ";
    name(fact.type);
  }
  flag("object", fact.hasObject);
  flag("virtual", fact.isVirtual);
  flag("indirect", fact.isIndirect);
  flag("address", fact.resultIsAddress);
  flag("discarded", fact.isDiscarded);
  flag("macro", fact.inMacro);
  flag("macroargument", fact.inMacroArgument);
  flag("assignable", fact.isObjectAssignable);
  flag("pointee", fact.isObjectPointee);
  flag("launch", fact.isLaunch);
  attribute("target", fact.target);
  names("captures", fact.captures);
  names("templates", fact.templateTypes);
  numbers("numbers", fact.templateNumbers);
  location(fact.where);
  out += "\n";
}

void Writer::terminator(const Terminator &terminator) {
  out += std::string("    ") + terminatorNames[static_cast<int>(terminator.kind)];
  if (terminator.value.reg != NoReg || terminator.kind == TerminatorKind::Branch) {
    out += " (";
    operand(terminator.value);
    out += ")";
  }
  for (std::size_t i = 0; i < terminator.successors.size(); ++i) {
    out += i ? ", " : " ";
    if (i < terminator.cases.size())
      out += std::to_string(terminator.cases[i]) + ":";
    out += "b" + std::to_string(terminator.successors[i]);
  }
  flag("enters", terminator.entersLoop);
  location(terminator.where);
  out += "\n";
}

void Writer::block(const Function &function, std::size_t index) {
  const Block &block = function.blocks[index];
  out += "  block " + std::to_string(index);
  if (block.handler >= 0)
    out += " handler=b" + std::to_string(block.handler);
  flag("loop", block.isLoopHead);
  numbers("varies", {block.variesInLoop.begin(), block.variesInLoop.end()});
  out += "\n";
  for (const Fact &item : block.facts)
    fact(item);
  terminator(block.terminator);
}

void Writer::function(const Function &function) {
  file = {};
  out += "function ";
  name(function.id);
  attribute("name", function.name);
  attribute("class", function.className);
  attribute("params", function.paramCount);
  attribute("required", function.requiredParams);
  attribute("registers", function.registerCount);
  attribute("result", function.resultType);
  flag("ref", function.resultIsReference);
  flag("constructor", function.isConstructor);
  flag("destructor", function.isDestructor);
  flag("static", function.isStatic);
  flag("const", function.isConst);
  flag("virtual", function.isVirtual);
  flag("lambda", function.isLambda);
  flag("main", function.isMain);
  flag("model", function.isModel);
  flag("private", function.isPrivate);
  flag("variadic", function.isVariadicTail);
  flag("body", function.hasBody);
  names("overrides", function.overrides);
  location(function.where);
  out += "\n";
  file = function.where.file;
  for (std::size_t i = 0; i < function.locals.size(); ++i) {
    const Variable &local = function.locals[i];
    out += "  local " + std::to_string(i) + " ";
    name(local.name);
    out += " ";
    name(local.type);
    flag("ref", local.isReference);
    location(local.where);
    out += "\n";
  }
  for (std::size_t i = 0; i < function.blocks.size(); ++i)
    block(function, i);
  file = {};
}

std::string Writer::write() {
  out += "unit ";
  name(unit.mainFile);
  out += " torch " + std::to_string(unit.torchMajor) + "." + std::to_string(unit.torchMinor);
  flag("fatal", unit.hasFatalError);
  flag("cuda", unit.isCuda);
  if (unit.joining != Joining::Linked)
    out += std::string(" ") + joiningNames[static_cast<int>(unit.joining)];
  attribute("globals", unit.globalInit);
  out += "\n";
  for (Name object : unit.objects) {
    out += "object ";
    name(object);
    out += "\n";
  }
  for (Name imported : unit.imports) {
    out += "import ";
    name(imported);
    out += "\n";
  }
  for (const std::string &error : unit.parseErrors) {
    out += "error ";
    name(Name(error));
    out += "\n";
  }
  for (Name read : unit.files) {
    out += "file ";
    name(read);
    out += "\n";
  }
  for (const auto &[kind, count] : unit.opaqueExpressions)
    out += "opaque " + kind.str() + " " + std::to_string(count) + "\n";
  for (Name skipped : unit.skippedFunctions) {
    out += "skipped ";
    name(skipped);
    out += "\n";
  }
  for (Name pattern : unit.uninstantiated) {
    out += "uninstantiated ";
    name(pattern);
    out += "\n";
  }
  for (const auto &[id, entry] : unit.types)
    type(entry);
  for (const auto &[id, entry] : unit.globals) {
    out += "global ";
    name(id);
    attribute("name", entry.name);
    attribute("type", entry.type);
    flag("const", entry.isConst);
    location(entry.where);
    out += "\n";
  }
  for (const auto &[id, entry] : unit.functions)
    function(entry);
  return std::move(out);
}

} // namespace

std::string writeText(const Unit &unit) { return Writer(unit).write(); }

} // namespace devicetidy
