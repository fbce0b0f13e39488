#include "analyzer/python/Syntax.h"

#include <algorithm>

namespace devicetidy::python {
namespace {

constexpr std::size_t placeFields = 5; // class, line, column, end line, end column
constexpr std::size_t mostText = 60;

unsigned numberIn(const llvm::json::Array &array, std::size_t i) {
  return static_cast<unsigned>(array[i].getAsInteger().value_or(0));
}

} // namespace

Node::Node(const llvm::json::Value *value, const File *file) : file(file) {
  const llvm::json::Array *found = value ? value->getAsArray() : nullptr;
  if (found && found->size() >= placeFields && (*found)[0].getAsInteger())
    array = found;
}

std::string_view Node::kind() const {
  return array ? file->schema[numberIn(*array, 0)][0] : std::string_view();
}

const llvm::json::Value *Node::field(std::string_view name) const {
  if (!array)
    return nullptr;
  const std::vector<std::string> &fields = file->schema[numberIn(*array, 0)];
  for (std::size_t i = 1; i < fields.size(); ++i)
    if (fields[i] == name)
      return placeFields + i - 1 < array->size() ? &(*array)[placeFields + i - 1] : nullptr;
  return nullptr;
}

Node Node::operator[](std::string_view name) const { return {field(name), file}; }

std::vector<Node> Node::list(std::string_view name) const {
  std::vector<Node> nodes;
  const llvm::json::Value *value = field(name);
  if (const llvm::json::Array *all = value ? value->getAsArray() : nullptr)
    for (std::size_t i = 1; i < all->size(); ++i)
      nodes.push_back({&(*all)[i], file}); // one without a node stays: the key of `**d`
  return nodes;
}

std::string Node::text(std::string_view name) const {
  const llvm::json::Value *value = field(name);
  const auto found = value ? value->getAsString() : std::nullopt;
  return found ? found->str() : std::string();
}

std::vector<std::string> Node::names(std::string_view name) const {
  std::vector<std::string> all;
  const llvm::json::Value *value = field(name);
  if (const llvm::json::Array *list = value ? value->getAsArray() : nullptr)
    for (const llvm::json::Value &each : *list)
      if (const auto text = each.getAsString())
        all.push_back(text->str());
  return all;
}

std::vector<Node> Node::children() const {
  std::vector<Node> nodes;
  const auto add = [&](const llvm::json::Value &value) {
    if (const Node node(&value, file); node)
      nodes.push_back(node);
  };
  for (std::size_t i = placeFields; array && i < array->size(); ++i) {
    const llvm::json::Array *list = (*array)[i].getAsArray();
    if (list && !list->empty() && (*list)[0].kind() == llvm::json::Value::Null)
      for (const llvm::json::Value &each : *list)
        add(each);
    else
      add((*array)[i]);
  }
  return nodes;
}

int Node::number(std::string_view name) const {
  const llvm::json::Value *value = field(name);
  return value ? static_cast<int>(value->getAsInteger().value_or(0)) : 0;
}

std::pair<std::string, std::string> Node::constant() const {
  const llvm::json::Value *value = field("value");
  const llvm::json::Array *pair = value ? value->getAsArray() : nullptr;
  if (!pair || pair->size() != 2)
    return {};
  return {(*pair)[0].getAsString().value_or("").str(), (*pair)[1].getAsString().value_or("").str()};
}

Location Node::where() const {
  Location where;
  if (!array || numberIn(*array, 1) == 0)
    return where;
  where.file = file->path;
  where.line = numberIn(*array, 1);
  where.column = numberIn(*array, 2) + 1;
  where.endLine = numberIn(*array, 3);
  where.endColumn = numberIn(*array, 4) + 1;
  return where;
}

Name Node::source() const {
  const Location place = where();
  if (!place.valid() || place.endLine > file->lines.size())
    return {};
  const std::size_t begin = file->lines[place.line - 1] + place.column - 1;
  const std::size_t end = file->lines[place.endLine - 1] + place.endColumn - 1;
  if (begin >= end || end > file->text.size())
    return {};
  std::string written = file->text.substr(begin, std::min(end - begin, mostText));
  std::replace(written.begin(), written.end(), '\n', ' ');
  return Name(written);
}

File::File(llvm::json::Value read, const Schema &schema) : schema(schema), json(std::move(read)) {
  const llvm::json::Object &object = *json.getAsObject();
  path = object.getString("path").value_or("").str();
  text = object.getString("text").value_or("").str();
  tree = object.get("tree");
  lines.push_back(0);
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n')
      lines.push_back(i + 1);
}

std::optional<std::array<std::int64_t, 3>> File::stamp() const {
  const llvm::json::Array *found = json.getAsObject()->getArray("stamp");
  if (!found || found->size() != 3)
    return std::nullopt;
  std::array<std::int64_t, 3> stamp{};
  for (std::size_t i = 0; i < stamp.size(); ++i)
    stamp[i] = (*found)[i].getAsInteger().value_or(0);
  return stamp;
}

std::string File::error() const {
  if (tree)
    return {};
  const llvm::json::Object &object = *json.getAsObject();
  return path + ":" + std::to_string(object.getInteger("line").value_or(1)) + ":" +
         std::to_string(object.getInteger("column").value_or(1)) +
         ": error: " + object.getString("error").value_or("it cannot be read").str();
}

} // namespace devicetidy::python
