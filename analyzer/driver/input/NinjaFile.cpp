#include "analyzer/driver/input/NinjaFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

#include <map>

namespace devicetidy::driver {
namespace {

using llvm::StringRef;
using Variables = std::map<std::string, std::string, std::less<>>;

bool isVariableLetter(char c) { return llvm::isAlnum(c) || c == '_' || c == '-'; }

/// Takes a path or a word off the front of a line: up to a blank or, with `endsAtColon`, a colon, with `$`
/// resolved.
std::string takeWord(StringRef &line, const Variables &variables, bool endsAtColon) {
  line = line.ltrim(' ');
  std::string word;
  while (!line.empty() && line.front() != ' ' && !(endsAtColon && line.front() == ':')) {
    if (line.front() != '$' || line.size() == 1) {
      word.push_back(line.front());
      line = line.drop_front();
      continue;
    }
    line = line.drop_front();
    StringRef name;
    if (line.consume_front("{"))
      std::tie(name, line) = line.split('}');
    else
      name = line.take_while(isVariableLetter);
    if (line.begin() == name.begin())
      line = line.drop_front(name.size());
    if (!name.empty()) {
      if (const auto known = variables.find(std::string_view(name)); known != variables.end())
        word += known->second;
    } else if (!line.empty()) {
      word.push_back(line.front()); // `$ `, `$:` and `$$`
      line = line.drop_front();
    }
  }
  return word;
}

std::vector<std::string> words(StringRef line, const Variables &variables) {
  std::vector<std::string> result;
  for (line = line.trim(' '); !line.empty(); line = line.ltrim(' '))
    result.push_back(takeWord(line, variables, /*endsAtColon=*/false));
  return result;
}

class Reader {
public:
  explicit Reader(StringRef text) : rest(text) {}

  NinjaFile run() {
    std::string line;
    while (nextLine(line)) {
      const StringRef text = line;
      if (text.starts_with(" "))
        binding(text.trim(' '));
      else
        statement(text);
    }
    return std::move(file);
  }

private:
  /// A line with those that `$` at its end continues.
  bool nextLine(std::string &line) {
    line.clear();
    if (rest.empty())
      return false;
    StringRef part;
    do {
      std::tie(part, rest) = rest.split('\n');
      part.consume_back("\r");
      part = line.empty() ? part : part.ltrim(' ');
      const bool continues = (part.size() - part.rtrim('$').size()) % 2 == 1; // `$$` is a dollar
      line += continues ? part.drop_back() : part;
      if (!continues)
        break;
    } while (!rest.empty());
    return true;
  }

  void statement(StringRef line) {
    current = nullptr;
    if (line.consume_front("build "))
      edge(line);
    else if (line.consume_front("include ") || line.consume_front("subninja "))
      file.includes.push_back(takeWord(line, variables, /*endsAtColon=*/false));
    else if (!line.starts_with("rule ") && !line.starts_with("pool ") && !line.starts_with("default ") &&
             line.contains('='))
      assign(line);
  }

  void assign(StringRef line) {
    const auto [name, value] = line.split('=');
    std::string text;
    for (const std::string &word : words(value, variables))
      text += (text.empty() ? "" : " ") + word;
    variables[name.trim(' ').str()] = text;
  }

  void edge(StringRef line) {
    // Nearly all edges compile; what they say is not checked.
    if (!line.contains_insensitive("link"))
      return;
    NinjaLink link;
    while (!line.empty() && !line.ltrim(' ').starts_with(":"))
      if (std::string word = takeWord(line, variables, /*endsAtColon=*/true); word != "|")
        link.outputs.push_back(std::move(word));
    line = line.ltrim(' ');
    if (!line.consume_front(":"))
      return;
    const std::string rule = takeWord(line, variables, /*endsAtColon=*/false);
    if (!StringRef(rule).contains_insensitive("link"))
      return;
    for (line = line.trim(' '); !line.empty(); line = line.ltrim(' ')) {
      std::string word = takeWord(line, variables, /*endsAtColon=*/false);
      if (word == "||" || word == "|@")
        break; // is only needed before, and is not an input
      if (word != "|")
        link.inputs.push_back(std::move(word));
    }
    file.links.push_back(std::move(link));
    current = &file.links.back();
  }

  /// Shared libraries can be missing from the inputs and be in the link line only.
  void binding(StringRef line) {
    if (!current)
      return;
    const auto [name, value] = line.split('=');
    const StringRef variable = name.trim(' ');
    if (variable != "LINK_LIBRARIES" && variable != "LINK_ARGS" && variable != "libs" && variable != "solibs")
      return;
    for (std::string &word : words(value, variables))
      if (!StringRef(word).starts_with("-"))
        current->inputs.push_back(std::move(word));
  }

  StringRef rest;
  NinjaFile file;
  NinjaLink *current = nullptr; ///< the edge whose bindings follow
  Variables variables;
};

} // namespace

NinjaFile readNinjaFile(std::string_view text) { return Reader(StringRef(text)).run(); }

} // namespace devicetidy::driver
