#include "analyzer/driver/Includers.h"

#include "analyzer/driver/Paths.h"

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

const IncludingSource *Includers::find(const std::string &header) {
  std::vector<const IncludingSource *> candidates;
  for (const IncludingSource &source : sources)
    candidates.push_back(&source);
  llvm::sort(candidates, [&header](const IncludingSource *a, const IncludingSource *b) {
    return std::make_pair(distance(*a, header), a) < std::make_pair(distance(*b, header), b);
  });
  const auto found =
      llvm::find_if(candidates, [&](const IncludingSource *source) { return reaches(*source, header); });
  return found == candidates.end() ? nullptr : *found;
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

Includers::Folders Includers::foldersOf(const IncludingSource &source) {
  Folders folders;
  for (std::size_t i = 0; i < source.arguments.size(); ++i) {
    StringRef argument = source.arguments[i];
    for (StringRef flag : {"-iquote", "-isystem", "-I"}) {
      if (!argument.consume_front(flag))
        continue;
      if (argument.empty() && i + 1 < source.arguments.size())
        argument = source.arguments[++i];
      (flag == "-iquote" ? folders.quoted : folders.all).push_back(absolutePath(argument, source.directory));
      break;
    }
  }
  return folders;
}

bool Includers::reaches(const IncludingSource &source, const std::string &header) {
  const Folders folders = foldersOf(source);
  llvm::StringSet<> seen;
  std::vector<std::string> open{source.file};
  seen.insert(source.file);
  while (!open.empty()) {
    const std::string file = std::move(open.back());
    open.pop_back();
    const std::vector<Include> includes = includesOf(file); // the map grows below
    for (const Include &include : includes) {
      std::vector<std::string> places;
      if (include.isQuoted) {
        places.push_back(path::parent_path(file).str());
        llvm::append_range(places, folders.quoted);
      }
      llvm::append_range(places, folders.all);
      for (const std::string &place : places) {
        std::string found = absolutePath(include.name, place);
        if (found == header)
          return true;
        if (!llvm::sys::fs::is_regular_file(found))
          continue;
        if (isProjectFile(found) && seen.insert(found).second)
          open.push_back(std::move(found));
        break;
      }
    }
  }
  return false;
}

} // namespace devicetidy::driver
