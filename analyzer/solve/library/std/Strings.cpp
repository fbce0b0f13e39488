//===- Strings.cpp - text that names devices ---===//
//
// "cuda:1", taken apart by the program's own parsing of options. A text that is known is computed with, so
// that `name.find("cuda") != npos` takes the way the program takes.
//
//===----------------------------------------------------------------------===//
#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/std/Containers.h"
#include "analyzer/solve/library/std/Words.h"

#include <cerrno>
#include <cstdlib>

namespace devicetidy {
namespace {

using models::Effect;

std::optional<std::string> textArg(const Call &call, std::size_t i) {
  const Value value = call.arg(i);
  if (!is(value, ValueKind::Scalar))
    return std::nullopt;
  const Term term = call.row.resolve(value->term);
  if (std::optional<Name> text = textOf(term))
    return text->str();
  // A single character is a number.
  if (auto code = constantOf(term); code && *code > 0 && *code < 128)
    return std::string(1, static_cast<char>(*code));
  return std::nullopt;
}

std::optional<std::int64_t> numberArg(const Call &call, std::size_t i, std::int64_t otherwise) {
  return i < call.argCount() ? call.row.numberOf(call.arg(i)) : otherwise;
}

Value text(std::string_view value) { return scalarValue(textTerm(Name(value))); }
Value number(std::int64_t value) { return scalarValue(intTerm(value)); }

// What is asked of one known text.
template <typename Ask> Outcomes ofText(const Call &call, Ask ask) {
  const std::optional<std::string> known = textArg(call, 0);
  return call.done(known ? ask(*known) : unknownValue());
}

// What is asked of two known texts.
template <typename Ask> Outcomes ofTexts(const Call &call, Ask ask) {
  const std::optional<std::string> other = textArg(call, 1);
  return ofText(call, [&](const std::string &known) { return other ? ask(known, *other) : unknownValue(); });
}

Outcomes sizeOfText(Call &call) {
  return ofText(call,
                [](const std::string &known) { return number(static_cast<std::int64_t>(known.size())); });
}

Outcomes substring(Call &call) {
  const auto from = numberArg(call, 1, 0), count = numberArg(call, 2, -1);
  return ofText(call, [&](const std::string &known) {
    if (!from || !count || *from < 0 || *from > static_cast<std::int64_t>(known.size()))
      return unknownValue();
    return text(known.substr(static_cast<std::size_t>(*from), static_cast<std::size_t>(*count)));
  });
}

Outcomes character(Call &call) {
  const auto at = numberArg(call, 1, 0);
  return ofText(call, [&](const std::string &known) {
    return at && *at >= 0 && *at < static_cast<std::int64_t>(known.size())
               ? number(static_cast<unsigned char>(known[static_cast<std::size_t>(*at)]))
               : unknownValue();
  });
}

// Texts that are not known differ or do not.
Outcomes compareTexts(Call &call) {
  const Value a = call.arg(0), b = call.arg(1);
  if (textArg(call, 0) && textArg(call, 1))
    return ofTexts(
        call, [](const std::string &left, const std::string &right) { return number(left.compare(right)); });
  return call.done(is(a, ValueKind::Scalar) && is(b, ValueKind::Scalar)
                       ? scalarValue(notTerm(call.row.resolve(applyTerm(op::equal, {a->term, b->term}))))
                       : unknownValue());
}

template <typename Find> Outcomes findIn(Call &call, std::int64_t otherwise, Find find) {
  const auto from = numberArg(call, 2, otherwise);
  return ofTexts(call, [&](const std::string &known, const std::string &other) {
    if (!from)
      return unknownValue();
    const std::size_t found = find(known, other, static_cast<std::size_t>(*from));
    return number(found == std::string::npos ? -1 : static_cast<std::int64_t>(found));
  });
}

// "cuda:" + std::to_string(i) names a device.
Outcomes concatenate(Call &call) {
  const Value a = call.arg(0), b = call.arg(1);
  if (isMadeOfDevice(a) || isMadeOfDevice(b))
    return call.done(keyMadeOf(isMadeOfDevice(a) ? a : b));
  if (!is(a, ValueKind::Scalar) || !is(b, ValueKind::Scalar))
    return call.done(unknownValue());
  const std::optional<Name> left = textOf(call.row.resolve(a->term)),
                            right = textOf(call.row.resolve(b->term));
  if (left && right)
    return call.done(text(left->str() + right->str()));
  static const Name cudaPrefix("cuda:");
  const Term suffix = call.row.resolve(b->term);
  if (left == cudaPrefix && suffix->kind == TermKind::Apply && suffix->name == op::toString) {
    Placement placement = Placement::cuda(suffix->args[0]);
    placement.text = call.fact.operands[1].text;
    return call.done(deviceValue(placement));
  }
  return call.done(scalarValue(applyTerm(op::concat, {a->term, b->term})));
}

Outcomes textOfNumber(Call &call) {
  const Value value = call.arg(0);
  if (!is(value, ValueKind::Scalar))
    return call.done(unknownValue());
  const Term term = call.row.resolve(value->term);
  if (const auto constant = constantOf(term))
    return call.done(text(std::to_string(*constant)));
  return call.done(scalarValue(applyTerm(op::toString, {term})));
}

// stoi, atoi: the number at the start of a known text.
Outcomes parseNumber(Call &call) {
  return ofText(call, [](const std::string &known) {
    char *end = nullptr;
    errno = 0;
    const long long parsed = std::strtoll(known.c_str(), &end, 10);
    return end == known.c_str() || errno != 0 ? unknownValue() : number(parsed);
  });
}

// Puts a text over what is there, or behind it.
Outcomes putText(Call &call, const std::optional<std::string> &before) {
  const Value given = call.arg(0), held = call.object();
  const std::optional<std::string> added = call.argCount() == 1 ? textArg(call, 0) : std::nullopt;
  Value after = scalarValue(call.machine.freshScalar(call));
  if (added && before)
    after = text(*before + *added);
  else if (call.argCount() == 1 && (isMadeOfDevice(given) || isMadeOfDevice(held)))
    after = keyMadeOf(isMadeOfDevice(held) ? held : given);
  call.machine.memory.write(call.row, call.objectAddress(), after);
  return call.done(call.fact.resultIsAddress ? addressValue(call.objectAddress()) : unknownValue());
}

std::optional<Outcomes> appendText(Call &call, const Effect &) {
  const Value held = call.object();
  const auto before =
      is(held, ValueKind::Scalar) ? textOf(call.row.resolve(held->term)) : std::optional<Name>();
  return putText(call, before ? std::optional(before->str()) : std::nullopt);
}

std::optional<Outcomes> assignText(Call &call, const Effect &) { return putText(call, std::string()); }

std::optional<Outcomes> makeText(const Making &making, const Effect &) {
  return making.done(making.args.empty()                    ? text("")
                     : is(making.arg(0), ValueKind::Scalar) ? making.arg(0)
                                                            : unknownValue());
}

} // namespace

Words textWords() {
  using std::string;
  return {{{"append_text", appendText}, {"assign_text", assignText}},
          {{"text_size", sizeOfText},
           {"substring", substring},
           {"character", character},
           {"compare_texts", compareTexts},
           {"starts_with",
            [](Call &call) {
              return ofTexts(call, [](const string &a, const string &b) { return number(startsWith(a, b)); });
            }},
           {"ends_with",
            [](Call &call) {
              return ofTexts(call, [](const string &a, const string &b) { return number(endsWith(a, b)); });
            }},
           {"find_text",
            [](Call &call) {
              return findIn(call, 0,
                            [](const string &a, const string &b, std::size_t at) { return a.find(b, at); });
            }},
           {"find_text_backwards",
            [](Call &call) {
              return findIn(call, -1,
                            [](const string &a, const string &b, std::size_t at) { return a.rfind(b, at); });
            }},
           {"find_any_of",
            [](Call &call) {
              return findIn(call, 0, [](const string &a, const string &b, std::size_t at) {
                return a.find_first_of(b, at);
              });
            }},
           {"concatenate", concatenate},
           {"text_of_number", textOfNumber},
           {"parse_number", parseNumber}},
          {{"make_text", makeText}}};
}

} // namespace devicetidy
