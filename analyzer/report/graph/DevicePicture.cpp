#include "analyzer/report/graph/DevicePicture.h"

#include "analyzer/report/graph/Markup.h"
#include "analyzer/report/source/Text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace devicetidy {
namespace {

/// Line and text colour, then fill, of a device on light and on dark ground. The text colours have a contrast
/// of at least 4.5 to the fill and to the page.
struct Tone {
  const char *line, *fill, *darkLine, *darkFill;
};
constexpr Tone tones[DeviceColours::count] = {
    {"#1d4ed8", "#e3ecff", "#93b8ff", "#1b2a4d"}, {"#9a4a00", "#ffecd6", "#ffb870", "#46300f"},
    {"#0b6b3a", "#ddf5e6", "#7fdca6", "#143a26"}, {"#7a2aa8", "#f4e6fd", "#d8a6f5", "#3a2049"},
    {"#96204f", "#fde4ee", "#ff9fc0", "#481a2d"}, {"#0a6570", "#dbf3f5", "#7cd8e2", "#11383d"},
    {"#6b5a00", "#f7f0cc", "#e2cd5a", "#3a3309"}, {"#444f8f", "#e6e8f8", "#b0b9f2", "#272c4d"}};
constexpr Tone unknownTone = {"#5b6470", "#eceef1", "#aab3bf", "#2b3037"};

std::string toneRules(std::string_view name, const char *line, const char *fill) {
  return fmt::format(".{0} .lane{{fill:{2}}}.{0} .box{{stroke:{1}}}.{0} .dev{{fill:{1}}}"
                     ".chip.{0}{{color:{1};background:{2}}}mark.{0}{{background:{2};border-color:{1}}}\n",
                     name, line, fill);
}

std::string toneSheet(bool isDark) {
  const auto rules = [&](const std::string &name, const Tone &tone) {
    return isDark ? toneRules(name, tone.darkLine, tone.darkFill) : toneRules(name, tone.line, tone.fill);
  };
  std::string text;
  for (std::size_t i = 0; i < DeviceColours::count; ++i)
    text += rules(fmt::format("d{}", i), tones[i]);
  return text + rules("du", unknownTone);
}

constexpr std::string_view lightSheet =
    ".dt .lane{opacity:.7}"
    ".dt text{font:11px system-ui,sans-serif;fill:#4a5360;text-anchor:middle}\n"
    ".dt .dev,.dt .name{font:600 12px ui-monospace,'DejaVu Sans Mono',monospace}\n"
    ".dt text.item{text-anchor:start}.dt .rule{stroke:#d9dde3}\n"
    ".dt .name{fill:#14181d}.dt .box{fill:#fff;stroke-width:1.5}.dt .at .box{stroke-dasharray:4 3}\n"
    ".dt .way{fill:none;stroke:#6b7580;stroke-width:1.5}.dt .back{stroke-dasharray:3 3}\n"
    ".dt .head{fill:#6b7580}.dt .where{fill:#4a5360;stroke:#fff;stroke-width:4px;paint-order:stroke}\n"
    ".dt .bad .box{fill:#fdecec;stroke:#b42318}.dt .bad .name{fill:#8f1b13}\n"
    ".dt .bad.way{stroke:#b42318}.dt .bad.head{fill:#b42318}\n";
constexpr std::string_view darkSheet =
    ".dt .rule{stroke:#2d333b}.dt text{fill:#b4bcc6}.dt .name{fill:#f0f3f6}.dt .box{fill:#16191d}\n"
    ".dt .way{stroke:#8d97a3}.dt .head{fill:#8d97a3}.dt .where{fill:#b4bcc6;stroke:#16191d}\n"
    ".dt .bad .box{fill:#3b1513;stroke:#ff8a80}.dt .bad .name{fill:#ffb4ac}\n"
    ".dt .bad.way{stroke:#ff8a80}.dt .bad.head{fill:#ff8a80}\n";

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    result += c == '\n' || c == '\t' ? ' ' : c;
  }
  return result + '"';
}

} // namespace

void DeviceColours::assign() {
  std::vector<std::string> sorted;
  for (const auto &[device, colour] : devices)
    sorted.push_back(device);
  std::sort(sorted.begin(), sorted.end(), deviceBefore);
  std::size_t next = 1; // the first is for the CPU
  for (const std::string &device : sorted)
    devices[device] = device == "cpu" ? 0 : next++;
}

std::string DeviceColours::styleOf(const std::string &device) const {
  const auto found = devices.find(device);
  if (device.empty() || found == devices.end())
    return "du";
  const std::size_t colour = found->second;
  return fmt::format("d{}", colour < count ? colour : 1 + (colour - 1) % (count - 1));
}

std::string pictureStyle() {
  return fmt::format("{}{}@media (prefers-color-scheme:dark){{\n{}{}}}\n", lightSheet, toneSheet(false),
                     darkSheet, toneSheet(true));
}

std::string shortPlace(const Location &where) {
  return fmt::format("{}:{}", fileName(where.file.str()), where.line);
}

std::string linesOf(const GraphItem &item) {
  std::string text = item.lines.size() == 1 ? "line" : "lines";
  for (std::size_t i = 0; i < item.lines.size(); ++i)
    text += fmt::format("{} {}", i ? "," : "", item.lines[i]);
  return text;
}

std::string captionOf(const GraphNode &node, const DeviceGraph &graph) {
  if (node.kind == NodeKind::Operation)
    return node.event;
  const std::string &device = graph.devices[node.lane];
  if (node.kind == NodeKind::Step)
    return node.event + (node.isMove ? " to " + device : "");
  return device.empty() || !node.items.empty() ? std::string() : "on " + device;
}

std::string dotOf(const DeviceGraph &graph, const std::string &root) {
  std::string text =
      fmt::format("digraph {} {{\n  labelloc=t;\n  label={};\n"
                  "  node [shape=box, style=\"rounded,filled\", fillcolor=white, "
                  "fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", fontsize=10];\n",
                  quoted(graph.title), quoted(graph.title));
  const auto nodeLine = [&](std::size_t i, std::string_view indent) {
    const GraphNode &node = graph.nodes[i];
    std::string label = node.kind == NodeKind::Place && !node.items.empty() ? "" : node.name;
    const std::string caption = captionOf(node, graph);
    label += label.empty() || caption.empty() ? caption : "\n" + caption;
    for (const GraphItem &item : node.items)
      label += fmt::format("{}{}: {}", label.empty() ? "" : "\n", item.name, linesOf(item));
    std::string escaped;
    for (char c : label)
      escaped += c == '\n'               ? std::string("\\n")
                 : c == '"' || c == '\\' ? std::string{'\\', c}
                                         : std::string(1, c);
    text += fmt::format("{}n{} [label=\"{}\"", indent, i, escaped);
    if (node.where.valid())
      text += fmt::format(", tooltip={}",
                          quoted(fmt::format("{}:{}:{}", relativePath(node.where.file.str(), root),
                                             node.where.line, node.where.column)));
    if (node.kind == NodeKind::Operation)
      text += ", color=\"#b42318\", fillcolor=\"#fdecec\"";
    if (node.kind == NodeKind::Place)
      text += ", style=\"rounded,filled,dashed\"";
    text += "];\n";
  };
  for (std::size_t lane = 0; lane < graph.devices.size(); ++lane) {
    const std::string &device = graph.devices[lane];
    const Tone &tone = device.empty() ? unknownTone : tones[lane % DeviceColours::count];
    text += fmt::format("  subgraph cluster_{} {{\n    label={};\n    style=\"rounded,filled\";\n"
                        "    fillcolor=\"{}\";\n    color=\"{}\";\n",
                        lane, quoted(device.empty() ? "unknown" : device), tone.fill, tone.line);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      if (graph.nodes[i].kind != NodeKind::Operation && graph.nodes[i].lane == lane)
        nodeLine(i, "    ");
    text += "  }\n";
  }
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].kind == NodeKind::Operation)
      nodeLine(i, "  ");
  for (const GraphEdge &edge : graph.edges) {
    text += fmt::format("  n{} -> n{}", edge.from, edge.to);
    std::string attributes;
    if (edge.where.valid())
      attributes = "label=" + quoted(shortPlace(edge.where));
    if (graph.nodes[edge.to].kind == NodeKind::Operation)
      attributes += std::string(attributes.empty() ? "" : ", ") + "color=\"#b42318\"";
    text += attributes.empty() ? ";\n" : " [" + attributes + "];\n";
  }
  return text + "}\n";
}

} // namespace devicetidy
