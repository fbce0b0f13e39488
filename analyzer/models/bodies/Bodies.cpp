#include "analyzer/models/bodies/Bodies.h"

#include "analyzer/facts/Binary.h"

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
// What a source models: a function, a class, or the id of a body.
struct BodyEntry {
  std::string_view name;
  std::uint32_t source;
};

#include "BodyHeader.inc"
#include "ModelBodies.inc"

std::string_view textOf(const unsigned char *bytes, std::size_t size) {
  return {reinterpret_cast<const char *>(bytes), size};
}

// One source of built-in bodies.
class Source {
public:
  const BodyIndex &index(const BodySource &source) {
    std::call_once(isRead, [&] {
      std::string error;
      std::optional<std::vector<Unit>> units = readBinary(textOf(source.facts, source.size), error);
      if (!units) // the build wrote them with the same format
        std::abort();
      read = std::make_unique<const BodyIndex>(std::move(*units));
    });
    return *read;
  }

private:
  std::once_flag isRead;
  std::unique_ptr<const BodyIndex> read;
};

// The sources that are listed under `name`.
using Sources = std::vector<std::uint32_t>;
using Directory = std::unordered_map<Name, Sources>;

template <typename Entries> Directory directoryOf(const Entries &entries) {
  Directory directory;
  for (const BodyEntry &entry : entries)
    directory[Name(entry.name)].push_back(entry.source);
  return directory;
}

const Directory &names() {
  static const Directory directory = directoryOf(bodyNames);
  return directory;
}

const Directory &classes() {
  static const Directory directory = directoryOf(bodyClasses);
  return directory;
}

const Directory &ids() {
  static const Directory directory = directoryOf(bodyIds);
  return directory;
}

const Sources &listed(const Directory &directory, Name name) {
  static const Sources none;
  const auto found = directory.find(name);
  return found == directory.end() ? none : found->second;
}

const BodyIndex &builtIn(std::uint32_t source) {
  static std::array<Source, std::size(bodySources)> sources;
  return sources[source].index(bodySources[source]);
}

const BodyIndex *users() {
  const UserModels *models = userModels();
  return models ? models->bodies.get() : nullptr;
}

} // namespace

bool hasBody(Name name) { return (users() && users()->byName.count(name)) || !listed(names(), name).empty(); }

bool hasBodies(Name owner) {
  return (users() && users()->classes.count(owner)) || !listed(classes(), owner).empty();
}

void forEachBody(Name name, const std::function<void(const Function &)> &visit) {
  auto visitAll = [&](const BodyIndex &index) {
    if (const auto found = index.byName.find(name); found != index.byName.end())
      for (const Function *body : found->second)
        visit(*body);
  };
  if (users())
    visitAll(*users());
  for (const std::uint32_t source : listed(names(), name))
    visitAll(builtIn(source));
}

const Function *bodyWithId(Name id) {
  if (const Function *body = users() ? users()->program.function(id) : nullptr)
    return body;
  const Sources &sources = listed(ids(), id);
  return sources.empty() ? nullptr : builtIn(sources.front()).program.function(id);
}

std::string_view bodyHeader() { return textOf(bodyHeaderText, sizeof bodyHeaderText); }

} // namespace devicetidy::models
