#include "analyzer/report/graph/DevicePicture.h"
#include "analyzer/report/graph/GraphLayout.h"
#include "analyzer/report/graph/Markup.h"
#include "analyzer/report/source/Source.h"

#include <fmt/format.h>

#include <algorithm>

namespace devicetidy {
namespace {

constexpr std::size_t WidestText = 34;                   ///< columns of a box
constexpr std::size_t WidestName = 28, WidestLines = 20; ///< columns of a list; more goes on in the next row
constexpr int NarrowestBox = 84, BoxPadding = 20, HeadOfBox = 40, ListPadding = 6, RowHeight = 16,
              ListGap = 12;

/// The fonts of the style sheet: pixels that a column of text takes, a little generous.
int codePixels(std::string_view text) { return static_cast<int>(columnWidth(text) * 73 / 10); }
int textPixels(std::string_view text) { return static_cast<int>(columnWidth(text) * 62 / 10); }

/// `text` in rows of at most `columns` columns, broken behind blanks where there are any.
std::vector<std::string> wrapped(std::string_view text, std::size_t columns) {
  std::vector<std::string> rows;
  while (columnWidth(text) > columns) {
    std::size_t end = 0, blank = 0, width = 0;
    while (end < text.size()) {
      std::uint32_t code = 0;
      const std::size_t length = std::max<std::size_t>(decodeUtf8(text.substr(end), code), 1);
      width += columnWidth(text.substr(end, length));
      if (width > columns)
        break;
      end += length;
      if (code == ' ')
        blank = end;
    }
    const std::size_t cut = std::max<std::size_t>(blank ? blank : end, 1);
    rows.emplace_back(text.substr(0, cut));
    text.remove_prefix(cut);
  }
  rows.emplace_back(text);
  return rows;
}

/// What stands in a box: a head of one or two lines, and a list.
struct BoxText {
  std::string name, caption;
  std::vector<std::pair<std::string, std::string>> rows; ///< a variable, its lines
  int namesWidth = 0;

  BoxText(const GraphNode &node, const DeviceGraph &graph) {
    if (node.items.empty() || node.kind != NodeKind::Place) // the list names it
      name = fitColumns(printable(node.name), WidestText);
    caption = fitColumns(printable(captionOf(node, graph)), WidestText);
    for (const GraphItem &item : node.items) {
      const std::vector<std::string> names = wrapped(printable(item.name), WidestName),
                                     lines = wrapped(linesOf(item), WidestLines);
      for (std::size_t i = 0; i < std::max(names.size(), lines.size()); ++i)
        rows.emplace_back(i < names.size() ? names[i] : "", i < lines.size() ? lines[i] : "");
    }
  }

  bool hasHead() const { return !name.empty() || !caption.empty(); }

  BoxSize size() {
    int linesWidth = 0;
    for (const auto &[names, lines] : rows) {
      namesWidth = std::max(namesWidth, codePixels(names));
      linesWidth = std::max(linesWidth, textPixels(lines));
    }
    const int listWidth = rows.empty() ? 0 : namesWidth + ListGap + linesWidth;
    const int listHeight = rows.empty() ? 0 : static_cast<int>(rows.size()) * RowHeight + 2 * ListPadding;
    return {std::max(NarrowestBox, BoxPadding + std::max({codePixels(name), textPixels(caption), listWidth})),
            std::max((hasHead() ? HeadOfBox : 0) + listHeight, RowHeight + 2 * ListPadding)};
  }
};

class SvgWriter {
public:
  SvgWriter(const DeviceGraph &graph, const DeviceColours &colours) : graph(graph), colours(colours) {
    std::vector<BoxSize> sizes;
    std::vector<int> laneWidths;
    for (const GraphNode &node : graph.nodes) {
      BoxSize size = texts.emplace_back(node, graph).size();
      if (node.where.valid() && node.kind == NodeKind::Step) // the label of a way is above or below its box
        size.width = std::max(size.width, textPixels(label(node.where)));
      sizes.push_back(size);
    }
    for (const std::string &device : graph.devices)
      laneWidths.push_back(codePixels(laneName(device)));
    layout = layOut(graph, sizes, laneWidths);
  }

  std::string write(const std::string &id, bool isStandalone) {
    out = fmt::format(
        "<svg {}class=\"dt\" role=\"img\" aria-labelledby=\"{}t {}d\" width=\"{}\" height=\"{}\" "
        "viewBox=\"0 0 {} {}\"><title id=\"{}t\">{}</title><desc id=\"{}d\">{}</desc>\n",
        isStandalone ? "xmlns=\"http://www.w3.org/2000/svg\" " : "", id, id, layout.width, layout.height,
        layout.width, layout.height, id, escapeMarkup(graph.title), id, describe());
    if (isStandalone)
      out += "<style>\n" + pictureStyle() +
             ".ground{fill:#fff}@media (prefers-color-scheme:dark){.ground{fill:#16191d}}\n</style>\n"
             "<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n";
    for (std::size_t lane = 0; lane < graph.devices.size(); ++lane)
      writeLane(lane);
    for (std::size_t i = 0; i < graph.edges.size(); ++i)
      writeLine(i);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      writeBox(i);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      writeLabels(i);
    return out + "</svg>";
  }

private:
  static std::string laneName(const std::string &device) {
    return device.empty() ? "unknown" : fitColumns(printable(device), WidestText);
  }
  static std::string label(const Location &where) {
    return fitColumns(printable(shortPlace(where)), WidestText);
  }

  std::string describe() const {
    std::string text;
    for (char c : graph.description)
      text += c == '\n' ? ' ' : c;
    return escapeMarkup(text);
  }

  void writeLane(std::size_t lane) {
    const GraphLayout::Lane &place = layout.lanes[lane];
    out += fmt::format(
        "<g class=\"{}\"><rect class=\"lane\" x=\"{}\" y=\"4\" width=\"{}\" height=\"{}\" rx=\"8\"/>"
        "<text class=\"dev\" x=\"{}\" y=\"24\">{}</text></g>\n",
        colours.styleOf(graph.devices[lane]), place.x, place.width, layout.laneHeight - 4,
        place.x + place.width / 2, escapeMarkup(laneName(graph.devices[lane])));
  }

  void writeLine(std::size_t i) {
    const GraphLayout::Line &line = layout.lines[i];
    const bool isBad = graph.nodes[graph.edges[i].to].kind == NodeKind::Operation;
    std::string path = fmt::format("M{} {}", line.points[0].x, line.points[0].y);
    for (std::size_t each = 1; each < line.points.size(); ++each) {
      const Point &from = line.points[each - 1], &to = line.points[each];
      const int bend = (to.y - from.y) * 3 / 5;
      if (from.x == to.x)
        path += fmt::format("V{}", to.y);
      else
        path += fmt::format("C{} {} {} {} {} {}", from.x, from.y + bend, to.x, to.y - bend, to.x, to.y);
    }
    out += fmt::format("<path class=\"way{}{}\" d=\"{}\"/>", isBad ? " bad" : "",
                       line.isUpward ? " back" : "", path);
    writeHead(line.isUpward ? line.points.front() : line.points.back(), line.isUpward, isBad);
  }

  void writeHead(const Point &tip, bool pointsUp, bool isBad) {
    out += fmt::format("<path class=\"head{}\" d=\"M{} {}l-4 {}h8z\"/>\n", isBad ? " bad" : "", tip.x, tip.y,
                       pointsUp ? 7 : -7);
  }

  void writeBox(std::size_t i) {
    const GraphNode &node = graph.nodes[i];
    const GraphLayout::Box &box = layout.boxes[i];
    const int middle = box.x + box.width / 2;
    const char *extra = node.kind == NodeKind::Place ? " at" : "";
    out += node.kind == NodeKind::Operation
               ? std::string("<g class=\"bad\">")
               : fmt::format("<g class=\"{}{}\">", colours.styleOf(graph.devices[node.lane]), extra);
    out += fmt::format("<title>{}</title>", escapeMarkup(hint(node)));
    out += fmt::format("<rect class=\"box\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\"/>", box.x,
                       box.y, box.width, box.height);
    const BoxText &text = texts[i];
    const bool hasTwo = !text.name.empty() && !text.caption.empty();
    if (!text.name.empty())
      out += fmt::format("<text class=\"name\" x=\"{}\" y=\"{}\">{}</text>", middle,
                         box.y + (hasTwo ? 17 : 24), escapeMarkup(text.name));
    if (!text.caption.empty())
      out += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>", middle, box.y + (hasTwo ? 32 : 24),
                         escapeMarkup(text.caption));
    writeList(text, box);
    out += "</g>\n";
  }

  void writeList(const BoxText &text, const GraphLayout::Box &box) {
    if (text.rows.empty())
      return;
    int y = box.y;
    if (text.hasHead()) {
      y += HeadOfBox;
      out += fmt::format("<path class=\"rule\" d=\"M{} {}h{}\"/>", box.x, y, box.width);
    }
    y += ListPadding;
    const int x = box.x + BoxPadding / 2;
    for (const auto &[name, lines] : text.rows) {
      y += RowHeight;
      if (!name.empty())
        out += fmt::format("<text class=\"name item\" x=\"{}\" y=\"{}\">{}</text>", x, y - 4,
                           escapeMarkup(name));
      if (!lines.empty())
        out += fmt::format("<text class=\"item\" x=\"{}\" y=\"{}\">{}</text>", x + text.namesWidth + ListGap,
                           y - 4, escapeMarkup(lines));
    }
  }

  /// The whole of what a box may cut short.
  std::string hint(const GraphNode &node) const {
    std::string text = node.name;
    if (const std::string caption = captionOf(node, graph); !caption.empty())
      text += (text.empty() ? "" : ", ") + caption;
    if (node.where.valid())
      text += fmt::format(" ({})", shortPlace(node.where));
    return text;
  }

  void writeLabels(std::size_t node) {
    bool isReached = false, isLabelled = false;
    const bool isOperation = graph.nodes[node].kind == NodeKind::Operation;
    for (std::size_t i = 0; i < graph.edges.size(); ++i) {
      const GraphEdge &edge = graph.edges[i];
      if (edge.to != node)
        continue;
      isReached = true;
      if (!edge.where.valid() || (isLabelled && !isOperation))
        continue;
      isLabelled = true;
      const std::vector<Point> &points = layout.lines[i].points;
      if (isOperation) // where each tensor leaves its lane; at the box they are too near each other
        writeLabel(points[points.size() - 2].x, points[points.size() - 2].y + 17, edge.where);
      else if (layout.lines[i].isUpward)
        writeLabel(points.front().x, points.front().y + 17, edge.where);
      else
        writeLabel(points.back().x, points.back().y - 12, edge.where);
    }
    if (!isReached && graph.nodes[node].kind == NodeKind::Step)
      writeOrigin(node);
  }

  /// A history begins here.
  void writeOrigin(std::size_t node) {
    const GraphLayout::Box &box = layout.boxes[node];
    const int x = box.x + box.width / 2;
    out += fmt::format("<path class=\"way\" d=\"M{} {}V{}\"/>", x, box.y - 10, box.y);
    writeHead({x, box.y}, false, false);
    writeLabel(x, box.y - 13, graph.nodes[node].where);
  }

  void writeLabel(int x, int y, const Location &where) {
    out +=
        fmt::format("<text class=\"where\" x=\"{}\" y=\"{}\">{}</text>\n", x, y, escapeMarkup(label(where)));
  }

  const DeviceGraph &graph;
  const DeviceColours &colours;
  std::vector<BoxText> texts; ///< as DeviceGraph::nodes
  GraphLayout layout;
  std::string out;
};

} // namespace

std::string svgOf(const DeviceGraph &graph, const DeviceColours &colours, const std::string &id,
                  bool isStandalone) {
  return SvgWriter(graph, colours).write(id, isStandalone);
}

} // namespace devicetidy
