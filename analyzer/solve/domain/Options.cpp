#include "analyzer/solve/domain/Options.h"

#include <algorithm>

namespace devicetidy {

constexpr std::string_view prefix = "option ";

Term optionTerm(const std::string &name) { return symbolTerm(Name(std::string(prefix) + name)); }

bool isOption(Term term) {
  return term->kind == TermKind::Symbol && term->name.view().substr(0, prefix.size()) == prefix;
}

bool mentionsOption(Term term) {
  return isOption(term) || std::any_of(term->args.begin(), term->args.end(), mentionsOption);
}

} // namespace devicetidy
