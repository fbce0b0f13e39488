#include "analyzer/driver/Git.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <unistd.h>

namespace devicetidy::driver {
namespace {

using llvm::StringRef;
namespace fs = llvm::sys::fs;

struct GitResult {
  int status = -1;
  std::string output, errors;
};

/// A file that is there as long as this is.
class TemporaryFile {
public:
  TemporaryFile() { isMade = !fs::createTemporaryFile("device-tidy-git", "txt", name); }
  ~TemporaryFile() {
    if (isMade)
      fs::remove(name);
  }
  StringRef path() const { return name; }
  std::string text() const {
    const auto buffer = llvm::MemoryBuffer::getFile(name);
    return buffer ? (*buffer)->getBuffer().str() : std::string();
  }

private:
  llvm::SmallString<128> name;
  bool isMade = false;
};

class Git {
public:
  /// Commands run in `directory`.
  explicit Git(std::string directory) : directory(std::move(directory)) {
    if (auto found = llvm::sys::findProgramByName("git"))
      program = *found;
  }
  bool isInstalled() const { return !program.empty(); }

  GitResult run(std::vector<StringRef> arguments) const {
    // A path is to be given out as it is, in whichever script.
    const std::vector<StringRef> always = {program, "-C", directory, "-c", "core.quotePath=false"};
    arguments.insert(arguments.begin(), always.begin(), always.end());
    const TemporaryFile output, errors;
    const std::optional<StringRef> redirects[] = {StringRef(), output.path(), errors.path()};
    GitResult result;
    result.status = llvm::sys::ExecuteAndWait(program, arguments, environment(), redirects);
    result.output = output.text();
    result.errors = StringRef(errors.text()).trim().str();
    return result;
  }

private:
  /// Ours without the options for `git diff` that would go before those it is given here.
  static std::vector<StringRef> environment() {
    std::vector<StringRef> variables;
    for (char **each = environ; *each; ++each)
      if (!StringRef(*each).starts_with("GIT_DIFF_OPTS="))
        variables.emplace_back(*each);
    return variables;
  }

  std::string directory, program;
};

/// The path after "+++ ", which git puts in quotes when it has control characters, quotes or backslashes.
std::string diffPath(StringRef written) {
  if (!written.consume_front("\""))
    return written.rtrim("\t").str(); // a tab ends a path with blanks in it
  std::string path;
  for (std::size_t i = 0; i < written.size() && written[i] != '"'; ++i) {
    if (written[i] != '\\' || i + 1 == written.size()) {
      path += written[i];
      continue;
    }
    const char code = written[++i];
    static constexpr StringRef codes = "abtnvfr", meanings = "\a\b\t\n\v\f\r";
    unsigned octal = 0;
    if (const std::size_t known = codes.find(code); known != StringRef::npos)
      path += meanings[known];
    else if (i + 2 < written.size() && !written.substr(i, 3).getAsInteger(8, octal)) {
      path += static_cast<char>(octal);
      i += 2;
    } else
      path += code;
  }
  return path;
}

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

/// "12,3" or "12": first line and number of lines.
std::pair<std::uint32_t, std::uint32_t> span(StringRef text) {
  std::uint32_t line = 0, count = 1;
  const auto [first, second] = text.split(',');
  first.getAsInteger(10, line);
  second.getAsInteger(10, count);
  return {line, count};
}

} // namespace

void addDiff(StringRef diff, const std::string &root, LineFilter &filter) {
  std::string file;
  std::uint32_t body = 0; // lines left of the hunk: what they look like means nothing
  while (!diff.empty()) {
    StringRef line;
    std::tie(line, diff) = diff.split('\n');
    if (body > 0 && !line.starts_with("\\")) {
      --body;
    } else if (line.consume_front("+++ ")) {
      const std::string path = diffPath(line);
      file = path == "/dev/null" ? std::string() : root + "/" + StringRef(path).drop_front(2).str();
    } else if (line.consume_front("@@ -")) {
      llvm::SmallVector<StringRef, 4> parts;
      line.split(parts, ' ');
      const auto [oldLine, oldCount] = span(parts[0]);
      const auto [newLine, newCount] = span(parts.size() > 1 ? parts[1].ltrim('+') : StringRef("0,0"));
      body = oldCount + newCount;
      if (!file.empty())
        filter.addPath(file, newCount ? LineFilter::Range(newLine, newLine + newCount - 1)
                                      : LineFilter::Range(std::max(newLine, 1u), newLine + 1));
    }
  }
}

bool addChangedLines(const std::string &directory, const std::string &ref, LineFilter &filter,
                     std::string &error) {
  const Git inFolder(directory);
  if (!inFolder.isInstalled()) {
    error = "it asks git, which is not installed";
    return false;
  }
  const GitResult top = inFolder.run({"rev-parse", "--show-toplevel"});
  if (top.status != 0) {
    error = directory + " is in no git repository: " + top.errors;
    return false;
  }
  const std::string root = StringRef(top.output).rtrim('\n').str();
  const Git git(root);
  const auto isCommit = [&git](const std::string &name) {
    return git.run({"rev-parse", "--quiet", "--verify", "--end-of-options", name + "^{commit}"}).status == 0;
  };
  const bool isUnborn = ref == "HEAD" && !isCommit(ref); // before the first commit all is new
  if (!isUnborn && !isCommit(ref)) {
    error = "git knows no commit '" + ref + "' in " + root +
            "; a clone of a CI job may have to fetch it first: git fetch origin " + ref;
    return false;
  }
  const GitResult base = isUnborn ? git.run({"hash-object", "-t", "tree", "/dev/null"}) // the empty one
                                  : git.run({"merge-base", ref, "HEAD"});
  if (base.status != 0) {
    error = "'" + ref + "' and HEAD have no commit in common in " + root +
            (base.errors.empty() ? std::string() : ": " + base.errors) +
            "; when the clone is shallow, fetch all of it: git fetch --unshallow";
    return false;
  }
  const std::string commit = StringRef(base.output).trim().str();
  const auto changes = [&](std::vector<StringRef> form) {
    std::vector<StringRef> arguments = {
        "diff", "--no-ext-diff", "--no-textconv", "--ignore-submodules", "--find-renames", "-O/dev/null"};
    arguments.insert(arguments.end(), form.begin(), form.end());
    arguments.insert(arguments.end(), {commit, "--"});
    return git.run(arguments);
  };
  const GitResult diff = changes({"--unified=0", "--no-color", "--src-prefix=a/", "--dst-prefix=b/"});
  const GitResult counts = changes({"--numstat", "-z"});
  const GitResult added = git.run({"ls-files", "--others", "--exclude-standard", "-z"});
  if (diff.status != 0 || counts.status != 0 || added.status != 0) {
    error = "git cannot tell the changes in " + root + ": " + diff.errors + counts.errors + added.errors;
    return false;
  }
  addDiff(diff.output, root, filter);
  llvm::SmallVector<StringRef, 16> files;
  StringRef(added.output).split(files, '\0', -1, /*KeepEmpty=*/false);
  for (StringRef file : binaryFiles(counts.output)) // git tells no lines of them
    files.push_back(file);
  for (StringRef file : files)
    filter.addPath(root + "/" + file.str(), LineFilter::allLines);
  return true;
}

} // namespace devicetidy::driver
