#include "analyzer/driver/programs/Preambles.h"

#include "analyzer/driver/input/TorchHeaders.h"
#include "analyzer/driver/support/Parallel.h"
#include "analyzer/frontend/IncludeScan.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cstring>

namespace devicetidy::driver {
namespace {

namespace fs = llvm::sys::fs;

/// Headers of the standard library come with LibTorch's; as members of the list they would only make it
/// differ from unit to unit.
bool isWorthNaming(const std::string &name) { return name.find('.') != std::string::npos; }

std::vector<std::string> flagsOf(const CompileCommand &command) {
  std::vector<std::string> flags = command.arguments;
  flags.pop_back(); // the source file comes last
  return flags;
}

bool contains(const std::vector<std::string> &all, const std::vector<std::string> &part) {
  return llvm::all_of(part, [&](const std::string &each) { return llvm::is_contained(all, each); });
}

/// The torch header that most of the units include; empty when none includes any.
template <class Leading>
std::string commonest(const std::vector<Leading> &leading, const std::vector<std::size_t> &units) {
  std::map<std::string, std::size_t> counts;
  for (std::size_t unit : units)
    for (const std::string &header : leading[unit].headers)
      if (isTorchHeader(header))
        ++counts[header];
  std::string best;
  for (const auto &[header, count] : counts)
    if (best.empty() || count > counts[best])
      best = header;
  return best;
}

std::string textOf(const std::vector<std::string> &headers) {
  std::string text;
  for (const std::string &header : headers)
    text += llvm::sys::path::is_absolute(header) ? "#include \"" + header + "\"\n"
                                                 : "#include <" + header + ">\n";
  return text;
}

/// A digest of the file's bytes; nothing when it cannot be read.
std::optional<cache::Digest> digestOfFile(const std::string &file) {
  auto content = llvm::MemoryBuffer::getFile(file, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!content)
    return std::nullopt;
  return cache::digestOf((*content)->getBuffer());
}

/// What a parse that made `inputs` looked at.
FileTrace traceOf(const cache::Inputs &inputs, cache::FileStates &states) {
  FileTrace trace;
  for (const cache::InputFile &file : inputs.files)
    if (const auto stamp = states.stamp(file.path))
      trace.reads.push_back({file.path, stamp->size, stamp->inode, stamp->modified});
  for (const cache::AbsentFiles &absent : inputs.absent)
    trace.absent.insert(trace.absent.end(), absent.paths.begin(), absent.paths.end());
  for (const cache::ListedDirectory &directory : inputs.directories)
    trace.directories.push_back(directory.path.str());
  llvm::sort(trace.absent);
  return trace;
}

cache::Digest identifiersName(const cache::Digest &binary) {
  return cache::DigestBuilder().add("identifiers").add(binary).finish();
}

} // namespace

std::vector<const frontend::Preamble *>
Preambles::choose(const std::vector<const CompileCommand *> &commands) {
  chosen.assign(commands.size(), nullptr);
  leading.assign(commands.size(), {});
  std::map<std::pair<std::string, std::vector<std::string>>, FlagSet> flagSets;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    FlagSet &flags = flagSets[{commands[i]->directory, flagsOf(*commands[i])}];
    flags.example = commands[i];
    flags.units.push_back(i);
    leading[i] = leadingOf(*commands[i]);
  }
  for (auto &[key, flags] : flagSets)
    chooseFor(flags);
  return chosen;
}

/// Everything before the macros that come before LibTorch: a header further down would bring
/// more macros that the preamble must not mention.
Preambles::Leading Preambles::leadingOf(const CompileCommand &command) const {
  const frontend::IncludeSearch search{command.directory, flagsOf(command), options.isProjectFile, unsaved};
  frontend::LeadingIncludes found = frontend::leadingIncludes(command.file, search);
  const auto torch = llvm::find_if(
      found.headers, [](const frontend::LeadingInclude &each) { return isTorchHeader(each.name); });
  Leading result;
  if (torch == found.headers.end())
    return result;
  for (const frontend::LeadingInclude &header : found.headers)
    if (header.macrosBefore <= torch->macrosBefore && isWorthNaming(header.name))
      result.headers.push_back(header.name);
  found.macros.resize(torch->macrosBefore);
  result.macros = std::move(found.macros);
  return result;
}

void Preambles::chooseFor(FlagSet &flags) {
  std::vector<std::size_t> open;
  for (std::size_t unit : flags.units)
    if (!leading[unit].headers.empty())
      open.push_back(unit);
  if (open.empty())
    return;
  cache::DigestBuilder name;
  name.add(cache::toolDigest()).add(flags.example->directory);
  for (const std::string &flag : flagsOf(*flags.example))
    name.add(flag);
  flags.name = name.finish();
  flags.kept = readKept(flags.name);
  takeKept(flags, open);
  while (isWorthMaking(open.size())) {
    const std::string header = commonest(leading, open);
    std::vector<std::size_t> group, rest;
    for (std::size_t unit : open)
      (llvm::is_contained(leading[unit].headers, header) ? group : rest).push_back(unit);
    Headers headers = leading[group.front()].headers;
    for (std::size_t unit : group)
      llvm::erase_if(
          headers, [&](const std::string &each) { return !llvm::is_contained(leading[unit].headers, each); });
    if (isWorthMaking(group.size()))
      if (const frontend::Preamble *preamble = build(flags, headers))
        for (std::size_t unit : group)
          if (!contradicts(flags.kept.back(), leading[unit]))
            chosen[unit] = preamble;
    open = std::move(rest);
  }
}

bool Preambles::isWorthMaking(std::size_t units) const {
  if (policy == MakePreamble::Always)
    return units >= 1;
  // Making one takes as long as to parse one and a half units, while the other jobs wait.
  return units >= 2 && 2 * units > 3 * jobs;
}

void Preambles::takeKept(FlagSet &flags, std::vector<std::size_t> &open) {
  llvm::stable_sort(flags.kept,
                    [](const Kept &a, const Kept &b) { return a.headers.size() > b.headers.size(); });
  const auto includes = [this](std::size_t unit, const Kept &kept) {
    return contains(leading[unit].headers, kept.headers);
  };
  for (Kept &kept : flags.kept) {
    const auto serves = [&](std::size_t unit) {
      return includes(unit, kept) && !contradicts(kept, leading[unit]);
    };
    if (llvm::none_of(open, serves))
      continue;
    if (const frontend::Preamble *preamble = this->open(flags, kept)) {
      for (std::size_t unit : open)
        if (serves(unit))
          chosen[unit] = preamble;
      llvm::erase_if(open, serves);
    }
  }
  // To make one more of the same headers would end the same way.
  llvm::erase_if(open, [&](std::size_t unit) {
    return llvm::any_of(flags.kept, [&](Kept &kept) {
      return includes(unit, kept) && contradicts(kept, leading[unit]) && !kept.identifiers.empty();
    });
  });
}

/// Whether a macro of the unit could have changed what the preamble's headers mean.
bool Preambles::contradicts(Kept &kept, const Leading &unit) {
  if (unit.macros.empty())
    return false;
  if (kept.identifiers.empty())
    if (const std::optional<std::string> bytes = store.read("preambles", identifiersName(kept.binary))) {
      kept.identifiers.resize(bytes->size() / sizeof(std::uint32_t));
      std::memcpy(kept.identifiers.data(), bytes->data(), kept.identifiers.size() * sizeof(std::uint32_t));
    }
  return kept.identifiers.empty() || llvm::any_of(unit.macros, [&](const std::string &macro) {
           return llvm::binary_search(kept.identifiers, frontend::identifierHash(macro));
         });
}

std::string Preambles::headerFile(const Headers &headers) const {
  return store.path("preambles", cache::digestOf(textOf(headers))) + ".h";
}

const frontend::Preamble *Preambles::open(const FlagSet &, const Kept &kept) {
  frontend::Preamble preamble;
  preamble.headerFile = headerFile(kept.headers);
  preamble.binaryFile = store.path("preambles", kept.binary) + ".pch";
  if (kept.inputs.check(states, options.isProjectFile) == cache::Freshness::Stale ||
      digestOfFile(preamble.headerFile) != cache::digestOf(textOf(kept.headers)) ||
      digestOfFile(preamble.binaryFile) != kept.binary)
    return nullptr;
  for (const std::string &file : {preamble.headerFile, preamble.binaryFile})
    cache::BlobStore::touch(file);
  preamble.trace = traceOf(kept.inputs, states);
  for (const cache::InputFile &file : kept.inputs.files)
    if (file.isSource)
      preamble.sources.push_back(file.path);
  return &preambles.emplace_back(std::move(preamble));
}

/// False when it cannot be made.
bool Preambles::parse(const FlagSet &flags, frontend::Preamble &preamble) {
  making(true);
  bool isBuilt = false;
  const bool survived = runGuarded([&] {
    isBuilt = frontend::buildPreamble(flags.example->directory, flagsOf(*flags.example), options, preamble);
  });
  making(false);
  return survived && isBuilt;
}

const frontend::Preamble *Preambles::build(FlagSet &flags, const Headers &headers) {
  frontend::Preamble preamble;
  preamble.headerFile = headerFile(headers);
  if (!store.writeFile(preamble.headerFile, textOf(headers)))
    return nullptr;
  const std::string temporary = store.temporaryFile(preamble.headerFile);
  if (temporary.empty())
    return nullptr;
  preamble.binaryFile = temporary;
  std::optional<cache::Inputs> inputs;
  std::optional<cache::Digest> binary;
  if (parse(flags, preamble)) {
    inputs = cache::makeInputs(preamble.trace, preamble.sources, states, options.isProjectFile);
    binary = digestOfFile(temporary);
  }
  if (!inputs || !binary) {
    fs::remove(temporary);
    return nullptr;
  }
  preamble.binaryFile = store.path("preambles", *binary) + ".pch";
  if (!store.moveFile(temporary, preamble.binaryFile))
    return nullptr;
  ++builtCount;
  llvm::erase_if(flags.kept, [&](const Kept &each) { return each.headers == headers; });
  const std::vector<std::uint32_t> &identifiers = preamble.identifiers;
  store.write(
      "preambles", identifiersName(*binary),
      {reinterpret_cast<const char *>(identifiers.data()), identifiers.size() * sizeof(std::uint32_t)});
  flags.kept.push_back({headers, *binary, std::move(*inputs), identifiers});
  writeKept(flags);
  return &preambles.emplace_back(std::move(preamble));
}

std::vector<Preambles::Kept> Preambles::readKept(const cache::Digest &name) {
  std::vector<Kept> result;
  const std::optional<std::string> bytes = store.read("preambles", name);
  if (!bytes)
    return result;
  cache::ByteReader reader(*bytes);
  for (std::uint64_t count = reader.count(); count > 0; --count) {
    Kept kept;
    kept.headers.resize(reader.count());
    for (std::string &header : kept.headers)
      header = reader.text();
    kept.binary = reader.digest();
    std::optional<cache::Inputs> inputs = cache::Inputs::read(reader);
    if (!inputs || !reader.ok)
      break;
    kept.inputs = std::move(*inputs);
    result.push_back(std::move(kept));
  }
  return result;
}

void Preambles::writeKept(const FlagSet &flags) {
  // Only the last ones: those for headers that are no longer included must not accumulate.
  constexpr std::size_t most = 4;
  const std::size_t first = flags.kept.size() > most ? flags.kept.size() - most : 0;
  cache::ByteWriter writer;
  writer.number(flags.kept.size() - first);
  for (std::size_t i = first; i < flags.kept.size(); ++i) {
    const Kept &kept = flags.kept[i];
    writer.number(kept.headers.size());
    for (const std::string &header : kept.headers)
      writer.text(header);
    writer.digest(kept.binary);
    kept.inputs.write(writer);
  }
  store.write("preambles", flags.name, writer.bytes);
}

} // namespace devicetidy::driver
