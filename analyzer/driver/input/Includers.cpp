#include "analyzer/driver/input/Includers.h"

#include "analyzer/driver/support/Paths.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <tuple>

namespace devicetidy::driver {
namespace {

using llvm::StringRef;
namespace path = llvm::sys::path;

/// The header and the source of one name are near, whichever folders they are in; then folders count.
auto distance(const IncludingSource &source, const std::string &header) {
  const bool isOther = path::stem(source.file) != path::stem(header);
  const std::string shared = commonDirectory(path::parent_path(source.file), path::parent_path(header));
  return std::make_tuple(isOther, -static_cast<long>(shared.size()), source.file.size(),
                         StringRef(source.file));
}

} // namespace

const IncludingSource *Includers::find(const std::string &header, std::string &spelled) {
  llvm::sys::fs::UniqueID wanted;
  if (llvm::sys::fs::getUniqueID(header, wanted))
    return nullptr;
  std::vector<const IncludingSource *> candidates;
  for (const IncludingSource &source : sources)
    candidates.push_back(&source);
  llvm::sort(candidates, [&header](const IncludingSource *a, const IncludingSource *b) {
    return std::make_pair(distance(*a, header), a) < std::make_pair(distance(*b, header), b);
  });
  for (const IncludingSource *source : candidates) {
    spelled = pathFrom(*source, wanted);
    if (!spelled.empty())
      return source;
  }
  return nullptr;
}

const std::vector<Includers::Include> &Includers::includesOf(const std::string &file) {
  const auto [entry, isNew] = known.try_emplace(file);
  if (!isNew)
    return entry->second;
  const auto text = llvm::MemoryBuffer::getFile(file, /*IsText=*/true);
  if (!text)
    return entry->second;
  for (llvm::line_iterator line(**text); !line.is_at_end(); ++line) {
    StringRef rest = line->ltrim();
    if (!rest.consume_front("#"))
      continue;
    rest = rest.ltrim();
    if (!rest.consume_front("include"))
      continue;
    rest.consume_front("_next");
    rest = rest.ltrim();
    const char close = rest.consume_front("\"") ? '"' : rest.consume_front("<") ? '>' : '\0';
    if (const std::size_t end = rest.find(close); close && end != StringRef::npos)
      entry->second.push_back({rest.take_front(end).str(), close == '"'});
  }
  return entry->second;
}

Includers::Flags Includers::flagsOf(const IncludingSource &source) {
  Flags flags;
  std::vector<StringRef> arguments;
  for (const std::string &argument : source.arguments)
    if (argument != "-Xclang") // CMake has clang's own reader include a precompiled header
      arguments.push_back(argument);
  for (std::size_t i = 0; i < arguments.size(); ++i)
    for (StringRef flag : {"-iquote", "-isystem", "-I", "--include=", "-include"}) {
      StringRef value = arguments[i];
      // Not -include-pch: a precompiled header is not the header.
      if (!value.consume_front(flag) || (flag == "-include" && value.starts_with("-")))
        continue;
      if (value.empty() && i + 1 < arguments.size())
        value = arguments[++i];
      if (flag.contains("include"))
        flags.forced.push_back(value.str());
      else
        (flag == "-iquote" ? flags.quoted : flags.all).push_back(absolutePath(value, source.directory));
      break;
    }
  return flags;
}

std::string Includers::pathFrom(const IncludingSource &source, const llvm::sys::fs::UniqueID &header) {
  const Flags flags = flagsOf(source);
  llvm::StringSet<> seen;
  std::vector<std::string> open;
  // The first place where the file is; a project file, or one that is included anyway, is looked into later.
  const auto look = [&](const std::string &name, std::vector<std::string> places, bool isFollowed) {
    llvm::append_range(places, flags.all);
    for (const std::string &place : places) {
      std::string found = absolutePath(name, place);
      llvm::sys::fs::file_status status;
      if (llvm::sys::fs::status(found, status) || !llvm::sys::fs::is_regular_file(status))
        continue;
      if (status.getUniqueID() == header)
        return found;
      if ((isFollowed || isProjectFile(found)) && seen.insert(found).second)
        open.push_back(std::move(found));
      break;
    }
    return std::string();
  };
  std::vector<std::string> places{source.directory};
  llvm::append_range(places, flags.quoted);
  for (const std::string &name : flags.forced)
    if (std::string found = look(name, places, /*isFollowed=*/true); !found.empty())
      return found;
  open.push_back(source.file);
  seen.insert(source.file);
  while (!open.empty()) {
    const std::string file = std::move(open.back());
    open.pop_back();
    const std::vector<Include> includes = includesOf(file); // the map grows below
    for (const Include &include : includes) {
      places.clear();
      if (include.isQuoted) {
        places.push_back(path::parent_path(file).str());
        llvm::append_range(places, flags.quoted);
      }
      if (std::string found = look(include.name, places, /*isFollowed=*/false); !found.empty())
        return found;
    }
  }
  return {};
}

} // namespace devicetidy::driver
