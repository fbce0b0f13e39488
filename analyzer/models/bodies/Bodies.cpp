#include "analyzer/models/bodies/Bodies.h"

#include "analyzer/facts/Binary.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>

namespace devicetidy::models {
namespace {

// A source, as bytes.
struct BodySource {
  const unsigned char *facts;
  std::size_t size;
};
// A body: the function that it models, its source, its id there.
struct BodyEntry {
  std::string_view name;
  std::uint32_t source;
  std::string_view id;
};

#include "BodyHeader.inc"
#include "ModelBodies.inc"

std::string_view textOf(const unsigned char *bytes, std::size_t size) {
  return {reinterpret_cast<const char *>(bytes), size};
}

// One source of built-in bodies, read when one of them is needed.
class Source {
public:
  const Program &program(const BodySource &source) {
    std::call_once(isRead, [&] {
      std::string error;
      std::optional<std::vector<Unit>> units = readBinary(textOf(source.facts, source.size), error);
      if (!units) // the build wrote them with the same format
        std::abort();
      read = link(std::move(*units));
    });
    return read;
  }

private:
  std::once_flag isRead;
  Program read;
};

const Program &builtIn(std::uint32_t source) {
  static std::array<Source, std::size(bodySources)> sources;
  return sources[source].program(bodySources[source]);
}

const BodyIndex *users() {
  const UserModels *models = userModels();
  return models ? models->bodies.get() : nullptr;
}

struct ByName {
  bool operator()(const BodyEntry &a, const BodyEntry &b) const { return a.name < b.name; }
};

} // namespace

std::vector<const Function *> bodiesOf(Name name) {
  std::vector<const Function *> bodies;
  if (users())
    if (const auto found = users()->byName.find(name); found != users()->byName.end())
      bodies = found->second;
  const BodyEntry wanted{name.view(), 0, {}};
  const auto [first, last] = std::equal_range(std::begin(bodyNames), std::end(bodyNames), wanted, ByName());
  for (const BodyEntry *entry = first; entry != last; ++entry)
    bodies.push_back(builtIn(entry->source).function(Name(entry->id)));
  return bodies;
}

bool hasBodies(Name owner) {
  return (users() && users()->classes.count(owner)) ||
         std::binary_search(std::begin(bodyClasses), std::end(bodyClasses), owner.view());
}

const Function *bodyWithId(Name id) {
  if (const Function *body = users() ? users()->program.function(id) : nullptr; body && body->hasBody)
    return body;
  static const std::unordered_map<Name, std::uint32_t> sources = [] {
    std::unordered_map<Name, std::uint32_t> table;
    for (const BodyEntry &entry : bodyNames)
      table.try_emplace(Name(entry.id), entry.source);
    return table;
  }();
  const auto found = sources.find(id);
  return found == sources.end() ? nullptr : builtIn(found->second).function(id);
}

std::set<std::string> namesWithBodies() {
  std::set<std::string> names;
  for (const BodyEntry &entry : bodyNames)
    names.emplace(entry.name);
  if (users())
    for (const auto &[name, bodies] : users()->byName)
      names.insert(name.str());
  return names;
}

std::string_view bodyHeader() { return textOf(bodyHeaderText, sizeof bodyHeaderText); }

} // namespace devicetidy::models
