#include "analyzer/driver/gate/UnusedSuppressions.h"
#include "analyzer/facts/Language.h"

#include "analyzer/config/Suggest.h"
#include "analyzer/report/diagnostic/NoLint.h"
#include "analyzer/report/finding/Glob.h"
#include "checks/CheckRegistry.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

namespace devicetidy::driver {
namespace {

constexpr llvm::StringRef ourPrefix = "device-";

class Search {
public:
  Search(Name file, const std::vector<FindingPlace> &places,
         const std::function<bool(Name, const std::string &)> &isEnabled, std::vector<Diagnostic> &result)
      : file(file), places(places), isEnabled(isEnabled), result(result) {
    for (const CheckInfo &info : checkInfos())
      known.emplace_back(info.name);
  }

  void run(const NoLintFile &comments) {
    for (const NoLintFile::Line &comment : comments.lines)
      look(comment, comment.written, comment.column);
    for (const NoLintFile::Block &comment : comments.blocks)
      look(comment, comment.line, comment.column);
  }

private:
  template <typename Comment> void look(const Comment &comment, std::uint32_t line, std::uint32_t column) {
    if (comment.globs.all)
      return;
    for (const std::string &glob : comment.globs.globs) {
      if (!llvm::StringRef(glob).starts_with(ourPrefix))
        continue;
      const bool isKnown =
          llvm::any_of(known, [&](const std::string &name) { return globMatches(glob, name); });
      if (!isKnown)
        report(line, column, "no check matches '" + glob + "'" + config::suggestion(glob, known));
      else if (llvm::any_of(known,
                            [&](const std::string &name) {
                              return globMatches(glob, name) && isEnabled(file, name);
                            }) &&
               !isUsed(comment, glob))
        report(line, column, "unused suppression: '" + glob + "' reports nothing here");
    }
  }

  template <typename Comment> bool isUsed(const Comment &comment, const std::string &glob) const {
    return llvm::any_of(places, [&](const FindingPlace &place) {
      return place.where.file == file && globMatches(glob, place.check) &&
             NoLintFile::covers(comment, place.check, place.where.line, place.where.column);
    });
  }

  void report(std::uint32_t line, std::uint32_t column, std::string message) {
    Diagnostic diagnostic;
    diagnostic.check = noLintCheck;
    diagnostic.level = Level::Likely;
    diagnostic.where = {file, line, column, line, column + 6}; // the word NOLINT
    diagnostic.message = std::move(message);
    result.push_back(std::move(diagnostic));
  }

  Name file;
  const std::vector<FindingPlace> &places;
  const std::function<bool(Name, const std::string &)> &isEnabled;
  std::vector<Diagnostic> &result;
  std::vector<std::string> known;
};

} // namespace

std::vector<Diagnostic> unusedSuppressions(const std::set<Name> &files,
                                           const std::vector<FindingPlace> &places, SourceCache &sources,
                                           const std::function<bool(Name, const std::string &)> &isEnabled) {
  std::vector<Diagnostic> result;
  for (Name file : files)
    Search(file, places, isEnabled, result).run(readNoLint(sources.text(file), isPython(file.view())));
  return result;
}

} // namespace devicetidy::driver
