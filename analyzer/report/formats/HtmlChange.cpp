#include "analyzer/report/formats/HtmlChange.h"

#include "analyzer/report/graph/Markup.h"
#include "analyzer/report/source/Text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace devicetidy {
namespace {

constexpr std::string_view Blanks = " \t\r";
constexpr std::size_t LongestChange = 2000, MostAround = 160; ///< bytes

using Lines = std::vector<std::string_view>;

// The old line and the new one are cut in the same places.
std::string shownHead(std::string_view head) {
  if (head.size() <= MostAround)
    return std::string(head);
  std::size_t begin = head.size() - MostAround;
  while (begin < head.size() && (static_cast<unsigned char>(head[begin]) & 0xC0) == 0x80)
    ++begin;
  return "..." + std::string(head.substr(begin));
}

std::string shownTail(std::string_view tail) {
  tail.remove_suffix(tail.size() - std::min(tail.find_last_not_of(Blanks) + 1, tail.size()));
  return cutText(std::string(tail), MostAround);
}

Lines linesOf(std::string_view text) {
  Lines lines;
  for (std::size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1))
    lines.push_back(text.substr(0, end));
  lines.push_back(text);
  for (std::string_view &line : lines)
    if (!line.empty() && line.back() == '\r')
      line.remove_suffix(1);
  return lines;
}

/// The blanks that every line begins with.
std::size_t indentOf(const Lines &lines) {
  std::size_t indent = std::string_view::npos;
  for (std::string_view line : lines)
    if (const std::size_t begin = line.find_first_not_of(Blanks); begin != std::string_view::npos)
      indent = std::min(indent, begin);
  return indent == std::string_view::npos ? 0 : indent;
}

class ChangeWriter {
public:
  ChangeWriter(const std::string &before, const std::string &after)
      : before(linesOf(before)), after(linesOf(after)),
        indent(std::min(indentOf(this->before), indentOf(this->after))) {}

  std::string write() {
    const std::size_t most = std::min(before.size(), after.size());
    std::size_t head = 0, tail = 0;
    while (head < most && before[head] == after[head])
      ++head;
    while (tail < most - head && before[before.size() - 1 - tail] == after[after.size() - 1 - tail])
      ++tail;
    add(before, 0, head, ' ', "span");
    add(before, head, before.size() - tail, '-', "del");
    add(after, head, after.size() - tail, '+', "ins");
    add(before, before.size() - tail, before.size(), ' ', "span");
    return "<pre class=\"change\">" + rows + "</pre>\n";
  }

private:
  void add(const Lines &lines, std::size_t first, std::size_t last, char sign, std::string_view element) {
    for (std::size_t i = first; i < last; ++i)
      rows += fmt::format("<span class=\"row {0}\"><span class=\"no\">{1}</span><{0}>{2}</{0}></span>",
                          element, sign, escapeMarkup(lines[i].substr(std::min(indent, lines[i].size()))));
  }

  const Lines before, after;
  const std::size_t indent;
  std::string rows;
};

} // namespace

std::string htmlChange(std::string_view source, const Replacement &change) {
  const std::size_t end = change.offset + change.length;
  if (end > source.size())
    return {};
  // What is inserted says little without the line around it.
  const std::size_t newline = change.offset ? source.rfind('\n', change.offset - 1) : std::string_view::npos;
  const std::size_t first = newline == std::string_view::npos ? 0 : newline + 1;
  const std::size_t last = std::min(source.find('\n', end), source.size());
  const std::string head = shownHead(source.substr(first, change.offset - first)),
                    tail = shownTail(source.substr(end, last - end));
  const auto cut = [](std::string_view text) { return cutText(std::string(text), LongestChange); };
  return ChangeWriter(head + cut(source.substr(change.offset, change.length)) + tail,
                      head + cut(change.text) + tail)
      .write();
}

} // namespace devicetidy
