#include "analyzer/report/graph/CollapseGraph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace devicetidy {
namespace {

std::string placeOf(const Location &where) {
  return fmt::format("{}:{}:{}:{}:{}", where.file.str(), where.line, where.column, where.endLine,
                     where.endColumn);
}

/// "cpu", "cpu or cuda", "cpu, cuda:0 or cuda:1".
std::string anyOf(const std::set<std::string> &devices) {
  std::vector<std::string> sorted;
  for (const std::string &device : devices)
    if (!device.empty() || devices.size() == 1)
      sorted.push_back(device);
  std::sort(sorted.begin(), sorted.end(), deviceBefore);
  std::string text;
  for (std::size_t i = 0; i < sorted.size(); ++i)
    text += (i == 0 ? "" : i + 1 == sorted.size() ? " or " : ", ") + sorted[i];
  return text;
}

/// Nodes of a graph that become one node of another.
class Merge {
public:
  explicit Merge(const DeviceGraph &graph) : graph(graph), groupOf(graph.nodes.size()) {}

  /// Puts the node into the group of that key.
  void put(std::size_t node, const std::string &key) {
    const auto [entry, isNew] = groups.emplace(key, members.size());
    if (isNew)
      members.emplace_back();
    members[entry->second].push_back(node);
    groupOf[node] = entry->second;
  }

  DeviceGraph take() {
    std::vector<std::string> devices;
    for (const std::vector<std::size_t> &group : members) {
      GraphNode node = graph.nodes[leaderOf(group)];
      std::set<std::string> each;
      for (std::size_t member : group) {
        each.insert(graph.devices.empty() ? std::string() : graph.devices[graph.nodes[member].lane]);
        if (member != leaderOf(group))
          addItems(node.items, graph.nodes[member].items);
      }
      std::sort(node.items.begin(), node.items.end(), [](const GraphItem &a, const GraphItem &b) {
        return std::tie(a.lines.front(), a.name) < std::tie(b.lines.front(), b.name);
      });
      devices.push_back(node.kind == NodeKind::Operation ? std::string() : anyOf(each));
      result.nodes.push_back(std::move(node));
    }
    addLanes(devices);
    addEdges();
    return std::move(result);
  }

private:
  /// A step is the head of its box, before the variables that are there since.
  std::size_t leaderOf(const std::vector<std::size_t> &group) const {
    for (std::size_t member : group)
      if (graph.nodes[member].kind != NodeKind::Place)
        return member;
    return group.front();
  }

  static void addItems(std::vector<GraphItem> &items, const std::vector<GraphItem> &more) {
    for (const GraphItem &item : more) {
      const auto known = std::find_if(items.begin(), items.end(),
                                      [&](const GraphItem &each) { return each.name == item.name; });
      if (known == items.end()) {
        items.push_back(item);
        continue;
      }
      std::vector<std::uint32_t> &lines = known->lines;
      lines.insert(lines.end(), item.lines.begin(), item.lines.end());
      std::sort(lines.begin(), lines.end());
      lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
    }
  }

  void addLanes(const std::vector<std::string> &devices) {
    std::vector<std::string> &lanes = result.devices;
    for (std::size_t i = 0; i < devices.size(); ++i)
      if (result.nodes[i].kind != NodeKind::Operation)
        lanes.push_back(devices[i]);
    std::sort(lanes.begin(), lanes.end(), deviceBefore);
    lanes.erase(std::unique(lanes.begin(), lanes.end()), lanes.end());
    for (std::size_t i = 0; i < devices.size(); ++i)
      if (result.nodes[i].kind != NodeKind::Operation)
        result.nodes[i].lane =
            static_cast<std::size_t>(std::find(lanes.begin(), lanes.end(), devices[i]) - lanes.begin());
  }

  void addEdges() {
    std::set<std::pair<std::pair<std::size_t, std::size_t>, Location>> known;
    for (const GraphEdge &edge : graph.edges) {
      const std::size_t from = groupOf[edge.from], to = groupOf[edge.to];
      if (from != to && known.insert({{from, to}, edge.where}).second)
        result.edges.push_back({from, to, edge.where});
    }
  }

  const DeviceGraph &graph;
  std::map<std::string, std::size_t> groups;
  std::vector<std::vector<std::size_t>> members;
  std::vector<std::size_t> groupOf;
  DeviceGraph result;
};

/// What is the same but for its device becomes one node.
DeviceGraph withoutAlternatives(const DeviceGraph &graph) {
  const auto keyOf = [&](std::size_t i) {
    const GraphNode &node = graph.nodes[i];
    return fmt::format("{}\n{}\n{}\n{}", static_cast<int>(node.kind), node.name, node.event,
                       placeOf(node.where));
  };
  std::map<std::size_t, std::size_t> next;
  for (const GraphEdge &edge : graph.edges)
    next.emplace(edge.from, edge.to);
  Merge merge(graph);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const bool isAnywhere =
        !graph.nodes[i].where.valid() && next.count(i); // only what follows says what it is
    merge.put(i, isAnywhere ? keyOf(i) + "\n" + keyOf(next[i]) : keyOf(i));
  }
  return merge.take();
}

/// Variables that the same steps brought to the same device share a box: that of the step where it is one.
DeviceGraph withLists(const DeviceGraph &graph) {
  std::vector<std::set<std::size_t>> before(graph.nodes.size());
  for (const GraphEdge &edge : graph.edges)
    before[edge.to].insert(edge.from);
  const auto keyOf = [&](std::size_t i) {
    const GraphNode &node = graph.nodes[i];
    if (node.kind != NodeKind::Place || node.items.empty())
      return fmt::format("{}", i);
    if (before[i].size() == 1) {
      const std::size_t step = *before[i].begin();
      if (graph.nodes[step].kind == NodeKind::Step && graph.nodes[step].lane == node.lane)
        return fmt::format("{}", step);
    }
    std::string key = fmt::format("list in {}", node.lane);
    for (std::size_t each : before[i])
      key += fmt::format(" {}", each);
    return key;
  };
  Merge merge(graph);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    merge.put(i, keyOf(i));
  return merge.take();
}

} // namespace

DeviceGraph collapsed(const DeviceGraph &graph) { return withLists(withoutAlternatives(graph)); }

} // namespace devicetidy
