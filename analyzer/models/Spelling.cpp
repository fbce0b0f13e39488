#include "analyzer/models/Spelling.h"

#include "ModelTables.inc"

#include <cstddef>
#include <initializer_list>
#include <unordered_map>

namespace devicetidy::models::spelling {
namespace {

const tables::SpellingRow *find(std::string_view word, std::string_view kind) {
  for (const tables::SpellingRow &row : tables::kSpelling)
    if (row.word == word && row.kind == kind)
      return &row;
  return nullptr;
}

std::string_view detailOf(std::string_view word, std::string_view kind) {
  const tables::SpellingRow *row = find(word, kind);
  return row ? row->detail : std::string_view();
}

std::string join(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (std::string_view part : parts)
    text += part;
  return text;
}

/// "3 default_dtype" -> three arguments before the options, and the default element type without them.
Factory factoryOf(std::string_view detail) {
  const std::size_t blank = detail.find(' ');
  std::size_t arguments = 0;
  for (char digit : detail.substr(0, blank))
    arguments = arguments * 10 + static_cast<std::size_t>(digit - '0');
  return {arguments, blank != std::string_view::npos};
}

constexpr std::string_view cpu = "torch::kCPU", cuda = "torch::kCUDA";

} // namespace

bool isNamespace(std::string_view word) { return find(word, "namespace"); }
std::string_view deviceConstant(std::string_view word) { return detailOf(word, "device"); }
bool isDeviceClass(std::string_view word) { return find(word, "device_class"); }
bool isDtypeConstant(std::string_view word) { return find(word, "dtype"); }

const Factory *factory(std::string_view word) {
  static const std::unordered_map<std::string_view, Factory> factories = [] {
    std::unordered_map<std::string_view, Factory> found;
    for (const tables::SpellingRow &row : tables::kSpelling)
      if (row.kind == "factory")
        found.emplace(row.word, factoryOf(row.detail));
    return found;
  }();
  const auto found = factories.find(word);
  return found == factories.end() ? nullptr : &found->second;
}

bool isMove(std::string_view method) { return find(method, "move"); }
std::string_view deviceOfMove(std::string_view method) { return detailOf(method, "move"); }
bool keepsDevice(std::string_view method) { return find(method, "same_device"); }
bool givesElement(std::string_view method) { return find(method, "element"); }
bool passesOn(std::string_view function) { return find(function, "pass"); }
bool isOption(std::string_view method) { return find(method, "option"); }
bool appends(std::string_view method) { return find(method, "append"); }
bool setsGradient(std::string_view method) { return find(method, "gradient"); }
bool isParameterName(std::string_view member) { return find(member, "parameter"); }
bool isRegistration(std::string_view function) { return function.substr(0, 9) == "register_"; }

std::string_view registration(std::string_view what) {
  for (const tables::SpellingRow &row : tables::kSpelling)
    if (row.kind == "register" && row.detail == what)
      return row.word;
  return {};
}

std::string device(std::string_view device) {
  if (device == "cpu" || device == "cuda")
    return std::string(device == "cpu" ? cpu : cuda);
  static constexpr std::string_view numbered = "cuda:";
  const bool isNumbered = device.size() > numbered.size() && device.substr(0, numbered.size()) == numbered &&
                          device.find_first_not_of("0123456789", numbered.size()) == std::string_view::npos;
  return isNumbered ? join({"torch::Device(", cuda, ", ", device.substr(numbered.size()), ")"})
                    : std::string();
}

std::string deviceOf(std::string_view tensor, std::string_view access) {
  return join({tensor, access, "device()"});
}

std::string optionsOf(std::string_view tensor, std::string_view access) {
  return join({tensor, access, "options()"});
}

std::string firstParameter(std::string_view module) { return join({module, "->parameters().front()"}); }

bool isTensorType(std::string_view type) { return type == "at::Tensor"; }

std::string optionsWith(std::string_view dtype, std::string_view device) {
  return join({"torch::TensorOptions(", dtype, ").device(", device, ")"});
}

std::string move(std::string_view tensor, std::string_view device) {
  return join({tensor, ".to(", device, ")"});
}

std::string moduleMove(std::string_view object, std::string_view method, std::string_view arguments) {
  if (const std::string_view named = deviceOfMove(method); !named.empty())
    return join({object, "to(", device(named), ")"});
  return isMove(method) ? join({object, "to", arguments}) : std::string();
}

} // namespace devicetidy::models::spelling
