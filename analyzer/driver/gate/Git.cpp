#include "analyzer/driver/gate/Git.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

#include <optional>
#include <utility>

#include <unistd.h>

namespace devicetidy::driver {
namespace {

using llvm::StringRef;
namespace fs = llvm::sys::fs;

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

/// Variables that say where a repository is, as `git rev-parse --local-env-vars` lists them.
constexpr StringRef ofOneRepository[] = {"GIT_DIR",
                                         "GIT_WORK_TREE",
                                         "GIT_INDEX_FILE",
                                         "GIT_OBJECT_DIRECTORY",
                                         "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                                         "GIT_COMMON_DIR",
                                         "GIT_GRAFT_FILE",
                                         "GIT_SHALLOW_FILE",
                                         "GIT_PREFIX"};

} // namespace

Git::Git(std::string directory, Variables variables) : directory(std::move(directory)), variables(variables) {
  if (auto found = llvm::sys::findProgramByName("git"))
    program = *found;
}

GitResult Git::run(std::vector<StringRef> arguments) const {
  // Paths are printed unchanged, in any script.
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

bool Git::knows(const std::string &commit) const {
  return run({"rev-parse", "--quiet", "--verify", "--end-of-options", commit + "^{commit}"}).status == 0;
}

/// Ours without the options for `git diff` that would go before those it is given here.
std::vector<StringRef> Git::environment() const {
  std::vector<StringRef> kept;
  for (char **each = environ; *each; ++each) {
    const StringRef name = StringRef(*each).split('=').first;
    if (name != "GIT_DIFF_OPTS" &&
        (variables == Variables::OfThisRepository || !llvm::is_contained(ofOneRepository, name)))
      kept.emplace_back(*each);
  }
  return kept;
}

} // namespace devicetidy::driver
