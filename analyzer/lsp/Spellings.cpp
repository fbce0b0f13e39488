#include "analyzer/lsp/Spellings.h"

#include "analyzer/driver/support/Paths.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <iterator>

namespace devicetidy::lsp {
namespace {

namespace path = llvm::sys::path;

} // namespace

std::string realPath(const std::string &path) {
  llvm::SmallString<256> result;
  return llvm::sys::fs::real_path(path, result) ? std::string() : result.str().str();
}

Spellings::Spellings(const std::set<std::string> &listed) : listed(listed) {
  for (const std::string &file : listed) {
    const std::string real = realPath(file);
    byRealPath.emplace(real, file);
    // What differs in front of their common end is a link.
    llvm::StringRef built = file, actual = real;
    while (!actual.empty() && built != actual && path::filename(built) == path::filename(actual)) {
      built = path::parent_path(built);
      actual = path::parent_path(actual);
    }
    if (!actual.empty() && built != actual && actual != real)
      links.emplace(actual.str(), built.str());
  }
}

std::string Spellings::of(const std::string &file) {
  if (listed.count(file))
    return file;
  const auto [entry, isNew] = known.try_emplace(file);
  if (isNew)
    entry->second = find(file);
  return entry->second;
}

/// The longest part of a real path that the database has another name for is called by that.
std::string Spellings::asBuilt(const std::string &realDirectory) const {
  for (llvm::StringRef directory = realDirectory; !directory.empty();
       directory = path::parent_path(directory))
    if (const auto link = links.find(directory.str()); link != links.end())
      return link->second + realDirectory.substr(directory.size());
  return realDirectory == "/" ? std::string() : realDirectory;
}

std::string Spellings::find(const std::string &file) const {
  if (const auto same = byRealPath.find(realPath(file)); same != byRealPath.end() && !same->first.empty())
    return same->second;
  std::string best = file;
  std::size_t bestShared = sharedWithListed(file);
  // Where the links of a part of the path lead. As few as possible are followed: those inside the project are
  // part of its names.
  for (std::size_t end = file.find('/'); end != std::string::npos; end = file.find('/', end + 1)) {
    const std::string real = realPath(end ? file.substr(0, end) : "/");
    if (real.empty())
      break;
    std::string candidate = asBuilt(real) + file.substr(end);
    if (const std::size_t shared = sharedWithListed(candidate); shared > bestShared) {
      best = std::move(candidate);
      bestShared = shared;
    }
  }
  return best;
}

/// How far a path goes with one that the database lists.
std::size_t Spellings::sharedWithListed(const std::string &file) const {
  std::size_t longest = 0;
  const auto compare = [&](const std::string &other) {
    longest =
        std::max(longest, driver::commonDirectory(path::parent_path(file), path::parent_path(other)).size());
  };
  const auto next = listed.lower_bound(file); // what shares most with it is one of its neighbours
  if (next != listed.end())
    compare(*next);
  if (next != listed.begin())
    compare(*std::prev(next));
  return longest;
}

} // namespace devicetidy::lsp
