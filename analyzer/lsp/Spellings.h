//===- Spellings.h - one file, one name -------------------------*- C++ -*-===//
//
// An editor names a file by the path that the user opened, which may contain symbolic links; the compile
// database, and with it every finding, uses the path of the build. Paths are compared as text everywhere
// else, so a file that an editor opens first gets the name of the build.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>

namespace devicetidy::lsp {

class Spellings {
public:
  /// `listed`: the files the database lists.
  explicit Spellings(const std::set<std::string> &listed);

  /// The build's name of `file` (absolute): the listed one; else, of the names that its links give it, the
  /// one that shares most with a listed file, which is usually `file` itself.
  std::string of(const std::string &file);

private:
  std::string find(const std::string &file) const;
  std::string asBuilt(const std::string &realDirectory) const;
  std::size_t sharedWithListed(const std::string &file) const;

  std::set<std::string> listed;
  std::map<std::string, std::string> byRealPath; ///< listed files
  std::map<std::string, std::string> links;      ///< real directory -> the name the database has for it
  std::map<std::string, std::string> known;
};

/// Where `path` is once no link is left in it; empty when there is nothing.
std::string realPath(const std::string &path);

} // namespace devicetidy::lsp
