#include "analyzer/driver/gate/ChangedLines.h"

#include "analyzer/driver/gate/Diff.h"
#include "analyzer/driver/gate/Git.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <map>
#include <optional>
#include <utility>

namespace devicetidy::driver {
namespace {

using llvm::StringRef;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

/// The paths that git takes for binary, of what `git diff --numstat -z` prints: "added<tab>deleted<tab>path",
/// of a renamed file with an empty path that the old and the new one follow.
std::vector<StringRef> binaryFiles(StringRef numstat) {
  llvm::SmallVector<StringRef, 16> fields;
  numstat.split(fields, '\0', -1, /*KeepEmpty=*/true);
  std::vector<StringRef> files;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    StringRef path = fields[i];
    const bool isBinary = path.consume_front("-\t-\t");
    const bool isRenamed = isBinary ? path.empty() : path.ends_with("\t");
    if (isRenamed && (i += 2) < fields.size())
      path = fields[i];
    if (isBinary)
      files.push_back(path);
  }
  return files;
}

/// The commit or tree that a repository is compared with, or the reason why there is none.
struct Base {
  std::string tree, error;
};

/// The tree without files, with which everything is new.
Base nothingYet(const Git &git) {
  const GitResult tree = git.emptyTree();
  return {StringRef(tree.output).trim().str(), tree.status == 0 ? std::string() : tree.errors};
}

/// What the branch under way began with.
Base sharedCommit(const Git &git, const std::string &ref) {
  if (!git.knows(ref))
    return ref == "HEAD"
               ? nothingYet(git) // before the first commit
               : Base{{},
                      "git does not know the commit '" + ref + "' in " + git.place() +
                          "; a clone of a CI job may have to fetch it first: git fetch origin " + ref};
  const GitResult base = git.run({"merge-base", ref, "HEAD"});
  if (base.status == 0)
    return {StringRef(base.output).trim().str(), {}};
  return {{},
          "'" + ref + "' and HEAD have no common ancestor in " + git.place() +
              (base.errors.empty() ? std::string() : ": " + base.errors) +
              "; when the clone is shallow, fetch all of it: git fetch --unshallow"};
}

/// Adds what the work tree of `git`, whose top is its place, has and `base` does not have. The reason why git
/// cannot tell, or nothing.
std::string addChanges(const Git &git, const std::string &base, LineFilter &filter) {
  const auto changes = [&](std::vector<StringRef> form) {
    std::vector<StringRef> arguments = {
        "diff", "--no-ext-diff", "--no-textconv", "--ignore-submodules", "--find-renames", "-O/dev/null"};
    arguments.insert(arguments.end(), form.begin(), form.end());
    arguments.insert(arguments.end(), {base, "--"});
    return git.run(arguments);
  };
  const GitResult diff =
      changes({"--unified=0", "--inter-hunk-context=0", "--no-color", "--src-prefix=a/", "--dst-prefix=b/"});
  const GitResult counts = changes({"--numstat", "-z"});
  const GitResult added = git.run({"ls-files", "--others", "--exclude-standard", "-z"});
  if (diff.status != 0 || counts.status != 0 || added.status != 0)
    return "git cannot tell the changes in " + git.place() + ": " + diff.errors + counts.errors +
           added.errors;
  addDiff(diff.output, git.place(), filter);
  llvm::SmallVector<StringRef, 16> files;
  StringRef(added.output).split(files, '\0', -1, /*KeepEmpty=*/false);
  for (StringRef file : binaryFiles(counts.output)) // git tells no lines of them
    files.push_back(file);
  for (StringRef file : files)
    filter.addPath(git.place() + "/" + file.str(), LineFilter::allLines);
  return {};
}

/// The other repositories that files are in.
class OtherRepositories {
public:
  OtherRepositories(const std::string &first, Base base, const std::string &ref)
      : first(first), ref(ref), bases{{first, std::move(base)}} {}

  /// Adds what has changed in the repository of `file`, once for each.
  void addFor(const std::string &file, LineFilter &filter, std::vector<std::string> &remarks) {
    llvm::SmallString<256> place; // a link is shown, and filtered, as what it leads to
    if (fs::real_path(file, place))
      return;
    const std::string root = rootOf(path::parent_path(place));
    if (root.empty() || bases.count(root))
      return;
    const Base base = baseOf(root);
    const std::string problem = base.error.empty() ? addChanges(gitIn(root), base.tree, filter) : base.error;
    if (!problem.empty())
      remarks.push_back("--changed-since: changes in " + root + " are ignored: " + problem);
  }

private:
  Git gitIn(const std::string &root) const {
    return Git(root, root == first ? Git::Variables::OfThisRepository : Git::Variables::OfAnother);
  }

  /// The top of the repository around a directory without symbolic links; empty when there is none.
  std::string rootOf(StringRef directory) {
    if (directory.empty() || directory == first)
      return directory.str();
    if (const auto known = roots.find(directory.str()); known != roots.end())
      return known->second;
    // A submodule and a second work tree have a file there, which says where the repository is.
    const std::string mark = directory.str() + "/.git";
    const bool isRoot = fs::is_regular_file(mark) || fs::exists(mark + "/HEAD");
    const std::string root = isRoot ? directory.str() : rootOf(path::parent_path(directory));
    return roots[directory.str()] = root;
  }

  const Base &baseOf(const std::string &root) {
    if (const auto known = bases.find(root); known != bases.end())
      return known->second;
    Base base = findBase(root);
    return bases[root] = std::move(base);
  }

  Base findBase(const std::string &root) {
    const Git git = gitIn(root);
    if (const GitResult top = git.run({"rev-parse", "--show-toplevel"}); top.status != 0)
      return {{}, top.errors};
    if (const std::string around = rootOf(path::parent_path(root)); !around.empty())
      if (std::optional<Base> asSubmodule = submoduleBase(git, around))
        return *std::move(asSubmodule);
    return sharedCommit(git, ref);
  }

  /// The commit of the submodule `git` that the repository `around` it had; nothing when it is not a
  /// submodule.
  std::optional<Base> submoduleBase(const Git &git, const std::string &around) {
    const std::string place = git.place().substr(around.size() + 1), literally = ":(literal)" + place;
    const Git outer = gitIn(around);
    const Base &base = baseOf(around);
    const GitResult now = outer.run({"ls-files", "--stage", "-z", "--", literally});
    const bool isSubmodule = StringRef(now.output).starts_with("160000 ");
    if (!base.error.empty())
      return isSubmodule ? std::optional(base) : std::nullopt;
    const GitResult then = outer.run({"ls-tree", "-z", base.tree, "--", place});
    StringRef entry = then.output;
    if (!entry.consume_front("160000 commit "))
      return isSubmodule ? std::optional(nothingYet(git)) : std::nullopt;
    const std::string commit = entry.take_until([](char c) { return c == '\t'; }).str();
    if (git.knows(commit))
      return Base{commit, {}};
    return Base{{},
                "git does not know the commit " + commit + " there, which " + around + " had; git -C " +
                    git.place() + " fetch origin " + commit};
  }

  const std::string &first, &ref;
  std::map<std::string, std::string> roots; ///< by directory
  std::map<std::string, Base> bases;        ///< by root
};

} // namespace

bool addChangedLines(const std::string &directory, const std::string &ref, const std::set<Name> &files,
                     LineFilter &filter, std::vector<std::string> &remarks, std::string &error) {
  const Git inFolder(directory);
  if (!inFolder.isInstalled()) {
    error = "it needs git, which is not installed";
    return false;
  }
  const GitResult top = inFolder.run({"rev-parse", "--show-toplevel"});
  if (top.status != 0) {
    error = directory + " is not in a git repository: " + top.errors;
    return false;
  }
  const std::string root = StringRef(top.output).rtrim('\n').str();
  const Git git(root);
  const Base base = sharedCommit(git, ref);
  error = base.error.empty() ? addChanges(git, base.tree, filter) : base.error;
  if (!error.empty())
    return false;
  OtherRepositories others(root, base, ref);
  for (Name file : files)
    others.addFor(file.str(), filter, remarks);
  return true;
}

} // namespace devicetidy::driver
