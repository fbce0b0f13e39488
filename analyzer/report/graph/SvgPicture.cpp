#include "analyzer/report/graph/DevicePicture.h"
#include "analyzer/report/graph/GraphLayout.h"
#include "analyzer/report/graph/Markup.h"
#include "analyzer/report/source/Source.h"

#include <fmt/format.h>

#include <algorithm>

namespace devicetidy {
namespace {

constexpr std::size_t WidestText = 34; ///< columns of a box
constexpr int NarrowestBox = 84, BoxPadding = 20;

/// The fonts of the style sheet: pixels that a column of text takes, a little generous.
int codePixels(std::string_view text) { return static_cast<int>(columnWidth(text) * 73 / 10); }
int textPixels(std::string_view text) { return static_cast<int>(columnWidth(text) * 62 / 10); }

class SvgWriter {
public:
  SvgWriter(const DeviceGraph &graph, const DeviceColours &colours) : graph(graph), colours(colours) {
    std::vector<int> boxWidths, laneWidths;
    for (const GraphNode &node : graph.nodes) {
      names.push_back(fitColumns(printable(node.name), WidestText));
      captions.push_back(fitColumns(printable(captionOf(node, graph)), WidestText));
      boxWidths.push_back(std::max(
          NarrowestBox, BoxPadding + std::max(codePixels(names.back()), textPixels(captions.back()))));
    }
    for (const GraphNode &node : graph.nodes) // the label of a way is above or below its box
      if (node.where.valid() && node.kind == NodeKind::Step) {
        int &width = boxWidths[static_cast<std::size_t>(&node - graph.nodes.data())];
        width = std::max(width, textPixels(label(node.where)));
      }
    for (const std::string &device : graph.devices)
      laneWidths.push_back(codePixels(laneName(device)));
    layout = layOut(graph, boxWidths, laneWidths);
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
    const bool hasTwo = !names[i].empty() && !captions[i].empty();
    if (!names[i].empty())
      out += fmt::format("<text class=\"name\" x=\"{}\" y=\"{}\">{}</text>", middle,
                         box.y + (hasTwo ? 17 : 24), escapeMarkup(names[i]));
    if (!captions[i].empty())
      out += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>", middle, box.y + (hasTwo ? 32 : 24),
                         escapeMarkup(captions[i]));
    out += "</g>\n";
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
  std::vector<std::string> names, captions;
  GraphLayout layout;
  std::string out;
};

} // namespace

std::string svgOf(const DeviceGraph &graph, const DeviceColours &colours, const std::string &id,
                  bool isStandalone) {
  return SvgWriter(graph, colours).write(id, isStandalone);
}

} // namespace devicetidy
