#include "analyzer/frontend/IncludeScan.h"

#include "clang/Basic/LangOptions.h"
#include "clang/Basic/SourceLocation.h"
#include "clang/Lex/Lexer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

namespace devicetidy::frontend {
namespace {

using clang::Token;
using llvm::StringRef;
namespace path = llvm::sys::path;

/// One line that begins with "#".
struct Directive {
  StringRef name;
  StringRef rest; ///< trimmed, without comments in front
};

/// Returns the directives of a text.
class DirectiveReader {
public:
  explicit DirectiveReader(const llvm::MemoryBuffer &buffer)
      : lexer(clang::SourceLocation(), language(), buffer.getBufferStart(), buffer.getBufferStart(),
              buffer.getBufferEnd()),
        end(buffer.getBufferEnd()) {
    lexer.LexFromRawLexer(token);
  }

  bool next(Directive &directive) {
    while (token.isNot(clang::tok::eof)) {
      const bool isHash = token.is(clang::tok::hash) && token.isAtStartOfLine();
      lexer.LexFromRawLexer(token);
      if (!isHash || token.isNot(clang::tok::raw_identifier) || token.isAtStartOfLine())
        continue;
      directive.name = token.getRawIdentifier();
      const char *begin = token.getRawIdentifier().end();
      StringRef line(begin, static_cast<std::size_t>(end - begin));
      directive.rest = line.take_until([](char c) { return c == '\n' || c == '\r'; }).trim();
      while (directive.rest.consume_front("/*")) // a comment that goes on in the next line leaves nothing
        directive.rest = directive.rest.split("*/").second.ltrim();
      lexer.LexFromRawLexer(token);
      return true;
    }
    return false;
  }

private:
  static const clang::LangOptions &language() {
    static const clang::LangOptions options = [] {
      clang::LangOptions result;
      result.CPlusPlus = result.CPlusPlus11 = result.CPlusPlus14 = result.CPlusPlus17 = true;
      result.LineComment = true;
      return result;
    }();
    return options;
  }

  clang::Lexer lexer;
  const char *end;
  Token token;
};

class Scanner {
public:
  explicit Scanner(const IncludeSearch &search) : search(search) { readDirectories(); }

  LeadingIncludes run(const std::string &file) {
    for (const std::string &forced : forcedIncludes)
      include(forced, /*isQuoted=*/true, search.directory, /*isConditional=*/false);
    scan(file, /*isConditional=*/false);
    found.macros.resize(found.headers.empty() ? 0 : found.headers.back().macrosBefore);
    return std::move(found);
  }

private:
  void readDirectories() {
    const std::vector<std::string> &arguments = search.arguments;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      StringRef argument = arguments[i];
      if (argument == "-Xclang" && i + 3 < arguments.size() && arguments[i + 1] == "-include") {
        forcedIncludes.push_back(arguments[i + 3]);
        i += 3;
        continue;
      }
      for (const auto &[flag, list] : {std::pair{StringRef("-I"), &directories},
                                       {StringRef("-iquote"), &quoteDirectories},
                                       {StringRef("-isystem"), &systemDirectories},
                                       {StringRef("-idirafter"), &systemDirectories}})
        if (argument.consume_front(flag)) {
          if (argument.empty() && i + 1 < arguments.size())
            argument = arguments[++i];
          list->push_back(join(search.directory, argument));
          break;
        }
    }
    directories.insert(directories.end(), systemDirectories.begin(), systemDirectories.end());
  }

  static std::string join(StringRef directory, StringRef name) {
    llvm::SmallString<256> result;
    if (!path::is_absolute(name))
      result = directory;
    path::append(result, name);
    path::remove_dots(result, /*remove_dot_dot=*/true);
    return result.str().str();
  }

  static std::string findIn(const std::vector<std::string> &places, StringRef name) {
    for (const std::string &place : places)
      if (std::string file = join(place, name); llvm::sys::fs::is_regular_file(file))
        return file;
    return {};
  }

  void include(StringRef name, bool isQuoted, StringRef from, bool isConditional) {
    std::string file;
    bool isByName = true; // would <name> find the same file?
    if (path::is_absolute(name)) {
      file = name.str();
    } else {
      if (isQuoted) {
        file = join(from, name);
        if (!llvm::sys::fs::is_regular_file(file))
          file = findIn(quoteDirectories, name);
        isByName = file.empty();
      }
      if (file.empty())
        file = findIn(directories, name);
    }
    if (!file.empty() && search.isProjectFile(file))
      return scan(file, isConditional);
    if (!isByName && !file.empty())
      name = file; // vendored next to the project's own files
    if (!isConditional && !isOver && seen.insert(name).second)
      found.headers.push_back({name.str(), found.macros.size()});
  }

  /// Follows the includes of a project file.
  void scan(const std::string &file, bool isConditional) {
    constexpr unsigned deepest = 200;
    if (isOver || depth >= deepest || !visited.insert(file).second)
      return;
    const std::unique_ptr<llvm::MemoryBuffer> buffer = read(file);
    if (!buffer)
      return;
    ++depth;
    DirectiveReader reader(*buffer);
    unsigned conditions = 0, guards = 0;
    bool isFirst = true;
    StringRef guard;
    for (Directive directive; !isOver && reader.next(directive);) {
      const StringRef name = directive.name;
      const StringRef word =
          directive.rest.take_until([](char c) { return c == ' ' || c == '\t' || c == '('; });
      if (name == "ifndef" && isFirst) {
        guard = word;
        guards = conditions = 1;
      } else if (name == "if" || name == "ifdef" || name == "ifndef") {
        ++conditions;
      } else if (name == "endif") {
        conditions -= conditions ? 1 : 0;
        guards = std::min(guards, conditions);
      } else if (name == "define" || name == "undef") {
        if (name == "undef" || guard.empty() || word != guard || directive.rest != guard)
          found.macros.push_back(word.str());
      } else if (name == "include" || name == "include_next") {
        readInclude(directive.rest, path::parent_path(file), isConditional || conditions > guards);
      }
      isFirst &= name == "pragma";
    }
    --depth;
  }

  /// The text of a project file; null when there is none.
  std::unique_ptr<llvm::MemoryBuffer> read(const std::string &file) const {
    if (search.unsaved)
      if (const auto found = search.unsaved->find(file); found != search.unsaved->end())
        return llvm::MemoryBuffer::getMemBufferCopy(found->second);
    auto buffer = llvm::MemoryBuffer::getFile(file, /*IsText=*/false, /*RequiresNullTerminator=*/true,
                                              /*IsVolatile=*/true);
    return buffer ? std::move(*buffer) : nullptr;
  }

  void readInclude(StringRef text, StringRef from, bool isConditional) {
    const char close = text.consume_front("<") ? '>' : text.consume_front("\"") ? '"' : '\0';
    const std::size_t end = close ? text.find(close) : StringRef::npos;
    if (!close)
      isOver = true;                 // a computed include may be any file
    else if (end != StringRef::npos) // one that is still being typed includes nothing
      include(text.take_front(end), close == '"', from, isConditional);
  }

  const IncludeSearch &search;
  std::vector<std::string> quoteDirectories, directories, systemDirectories, forcedIncludes;
  LeadingIncludes found;
  llvm::StringSet<> seen, visited;
  bool isOver = false;
  unsigned depth = 0;
};

} // namespace

LeadingIncludes leadingIncludes(const std::string &file, const IncludeSearch &search) {
  return Scanner(search).run(file);
}

} // namespace devicetidy::frontend
