#include "analyzer/report/graph/GraphLayout.h"

#include <algorithm>
#include <map>
#include <set>

namespace devicetidy {
namespace {

constexpr int LayerGap = 42, OperationGap = 64, HeadHeight = 34, FirstLayer = HeadHeight + 34;
constexpr int ColumnGap = 22, PassingGap = 6, LanePadding = 16, LaneGap = 10, LaneFoot = 28,
              PassingWidth = 10, Margin = 4;
constexpr int PageWidth = 1000;
constexpr std::size_t MostColumns = 4; ///< of boxes in a lane, where the picture is too wide

/// A node, or the place where an edge passes a layer.
struct Item {
  std::size_t lane = 0;
  std::size_t layer = 0;
  std::size_t column = 0; ///< in its lane
  int width = 0, height = 0;
  bool isOperation = false, isPassing = false;
  std::vector<std::size_t> above; ///< items of the layer before
};

class Layering {
public:
  /// `boxesPerLane`: at most so many boxes of a lane are side by side; 0 is as many as there are.
  Layering(const DeviceGraph &graph, const std::vector<BoxSize> &boxes, const std::vector<int> &laneWidths,
           std::size_t boxesPerLane)
      : graph(graph), laneWidths(laneWidths), boxesPerLane(boxesPerLane), items(graph.nodes.size()),
        upward(graph.edges.size()), below(graph.nodes.size()) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      items[i].lane = graph.nodes[i].lane;
      items[i].width = boxes[i].width;
      items[i].height = boxes[i].height;
      items[i].isOperation = graph.nodes[i].kind == NodeKind::Operation;
    }
  }

  GraphLayout run() {
    orient();
    if (boxesPerLane)
      assignNarrowLayers();
    else
      assignLayers();
    addPassings();
    assignColumns();
    return place();
  }

private:
  std::size_t top(std::size_t edge) const {
    return upward[edge] ? graph.edges[edge].to : graph.edges[edge].from;
  }
  std::size_t bottom(std::size_t edge) const {
    return upward[edge] ? graph.edges[edge].from : graph.edges[edge].to;
  }

  /// Finds the edges that lead back to where a walk along the edges came from: they are drawn upwards.
  void orient() {
    std::vector<std::vector<std::size_t>> leaving(items.size());
    for (std::size_t i = 0; i < graph.edges.size(); ++i)
      leaving[graph.edges[i].from].push_back(i);
    enum : char { New, Open, Done };
    std::vector<char> state(items.size(), New);
    std::vector<std::pair<std::size_t, std::size_t>> walk;
    for (std::size_t start = 0; start < items.size(); ++start) {
      if (state[start] != New)
        continue;
      state[start] = Open;
      walk.emplace_back(start, 0);
      while (!walk.empty()) {
        auto &[at, next] = walk.back();
        if (next == leaving[at].size()) {
          state[at] = Done;
          order.push_back(at);
          walk.pop_back();
          continue;
        }
        const std::size_t edge = leaving[at][next++], to = graph.edges[edge].to;
        if (state[to] == Open)
          upward[edge] = true;
        else if (state[to] == New) {
          state[to] = Open;
          walk.emplace_back(to, 0);
        }
      }
    }
    std::reverse(order.begin(), order.end()); // tops before bottoms
    for (std::size_t i = 0; i < graph.edges.size(); ++i)
      below[top(i)].push_back(bottom(i));
  }

  void assignLayers() {
    for (std::size_t at : order)
      for (std::size_t next : below[at])
        items[next].layer = std::max(items[next].layer, items[at].layer + 1);
    for (const Item &item : items)
      if (!item.isOperation)
        layers = std::max(layers, item.layer + 1);
    for (Item &item : items)
      if (item.isOperation)
        item.layer = layers;
    // Histories of different lengths end side by side, where they meet.
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      if (below[*at].empty() || items[*at].isOperation)
        continue;
      std::size_t nearest = layers;
      for (std::size_t next : below[*at])
        nearest = std::min(nearest, items[next].layer);
      items[*at].layer = nearest - 1;
    }
  }

  /// In the order of the nodes as far as the edges allow, each in the first layer that has room for it.
  void assignNarrowLayers() {
    std::vector<std::size_t> above(items.size());
    for (const std::vector<std::size_t> &nexts : below)
      for (std::size_t next : nexts)
        ++above[next];
    std::set<std::size_t> ready;
    for (std::size_t i = 0; i < items.size(); ++i)
      if (above[i] == 0)
        ready.insert(i);
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> boxesIn; // by lane and layer
    while (!ready.empty()) {
      const std::size_t at = *ready.begin();
      ready.erase(ready.begin());
      Item &item = items[at];
      if (!item.isOperation) {
        while (boxesIn[{item.lane, item.layer}] >= boxesPerLane)
          ++item.layer;
        ++boxesIn[{item.lane, item.layer}];
        layers = std::max(layers, item.layer + 1);
      }
      for (std::size_t next : below[at]) {
        items[next].layer = std::max(items[next].layer, item.layer + 1);
        if (--above[next] == 0)
          ready.insert(next);
      }
    }
    for (Item &item : items)
      if (item.isOperation)
        item.layer = layers;
  }

  void addPassings() {
    chains.resize(graph.edges.size());
    for (std::size_t i = 0; i < graph.edges.size(); ++i) {
      std::size_t before = top(i);
      chains[i].push_back(before);
      for (std::size_t layer = items[before].layer + 1; layer < items[bottom(i)].layer; ++layer) {
        Item passing;
        passing.lane = items[top(i)].lane;
        passing.layer = layer;
        passing.width = PassingWidth;
        passing.isPassing = true;
        passing.above.push_back(before);
        before = items.size();
        items.push_back(std::move(passing));
        chains[i].push_back(before);
      }
      items[bottom(i)].above.push_back(before);
      chains[i].push_back(bottom(i));
    }
  }

  /// The column an item would like: that of the item above it in its lane. Where boxes have to be narrow,
  /// lines that pass stay beside them.
  std::size_t wishOf(const Item &item) const {
    std::size_t wish = 0;
    for (std::size_t above : item.above)
      if (!items[above].isOperation && items[above].lane == item.lane) {
        wish = items[above].column;
        break;
      }
    if (boxesPerLane == 0)
      return wish;
    return item.isPassing ? std::max(wish, boxesPerLane) : std::min(wish, boxesPerLane - 1);
  }

  void assignColumns() {
    std::vector<std::size_t> sorted;
    for (std::size_t i = 0; i < items.size(); ++i)
      if (!items[i].isOperation)
        sorted.push_back(i);
    std::sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) {
      return items[a].layer != items[b].layer ? items[a].layer < items[b].layer : a < b;
    });
    std::map<std::pair<std::size_t, std::size_t>, std::vector<bool>> taken; // by lane and layer
    for (auto first = sorted.begin(); first != sorted.end();) {
      const auto last = std::find_if(
          first, sorted.end(), [&](std::size_t each) { return items[each].layer != items[*first].layer; });
      std::vector<std::pair<std::size_t, std::size_t>> wishes; // boxes choose before lines that pass
      for (auto each = first; each != last; ++each)
        wishes.emplace_back(wishOf(items[*each]), *each);
      std::sort(wishes.begin(), wishes.end(), [&](const auto &a, const auto &b) {
        return items[a.second].isPassing != items[b.second].isPassing ? items[b.second].isPassing : a < b;
      });
      for (const auto &[wish, each] : wishes)
        items[each].column =
            nearestFree(taken[{items[each].lane, items[each].layer}], wish, columnsOf(items[each]));
      first = last;
    }
  }

  /// The first column that an item may have, and the one after the last.
  std::pair<std::size_t, std::size_t> columnsOf(const Item &item) const {
    constexpr std::size_t any = static_cast<std::size_t>(-1);
    if (boxesPerLane == 0)
      return {0, any};
    return item.isPassing ? std::make_pair(boxesPerLane, any) : std::make_pair(std::size_t{0}, boxesPerLane);
  }

  static std::size_t nearestFree(std::vector<bool> &taken, std::size_t wish,
                                 std::pair<std::size_t, std::size_t> columns) {
    const auto isFree = [&](std::size_t column) {
      return column >= columns.first && column < columns.second && (column >= taken.size() || !taken[column]);
    };
    std::size_t found = wish;
    for (std::size_t distance = 0;; ++distance) {
      if (isFree(wish + distance)) {
        found = wish + distance;
        break;
      }
      if (distance <= wish && isFree(wish - distance)) {
        found = wish - distance;
        break;
      }
    }
    taken.resize(std::max(taken.size(), found + 1));
    taken[found] = true;
    return found;
  }

  GraphLayout place() {
    GraphLayout layout;
    const std::vector<int> centres = placeLanes(layout);
    placeLayers();
    const bool hasOperations =
        std::any_of(items.begin(), items.end(), [](const Item &item) { return item.isOperation; });
    layout.laneHeight = layerTops[layers] - OperationGap + LaneFoot;
    layout.height = Margin + (hasOperations ? layerTops[layers] + layerHeights[layers] : layout.laneHeight);
    std::vector<int> x = centres;
    placeOperations(layout, x);
    layout.boxes.resize(graph.nodes.size());
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      layout.boxes[i] = {x[i] - items[i].width / 2, topOf(items[i]), items[i].width, items[i].height};
    placeLines(layout, x);
    return layout;
  }

  /// A layer is as high as its highest box; the last one is that of the operations.
  void placeLayers() {
    layerHeights.assign(layers + 1, 0);
    for (const Item &item : items)
      layerHeights[item.layer] = std::max(layerHeights[item.layer], item.height);
    int top = FirstLayer;
    for (std::size_t layer = 0; layer <= layers; ++layer) {
      layerTops.push_back(top);
      top += layerHeights[layer] + (layer + 1 < layers ? LayerGap : OperationGap);
    }
  }

  int topOf(const Item &item) const { return layerTops[item.layer]; }
  /// Where a line leaves it: a line that passes goes straight through the layer.
  int bottomOf(const Item &item) const {
    return layerTops[item.layer] + (item.isPassing ? layerHeights[item.layer] : item.height);
  }

  /// Lanes side by side, each as wide as its columns; the middle of each item.
  std::vector<int> placeLanes(GraphLayout &layout) {
    std::vector<std::vector<int>> widths(graph.devices.size());
    for (const Item &item : items)
      if (!item.isOperation) {
        std::vector<int> &columns = widths[item.lane];
        columns.resize(std::max(columns.size(), item.column + 1), PassingWidth);
        columns[item.column] = std::max(columns[item.column], item.width);
      }
    std::vector<std::vector<int>> middles(widths.size());
    int x = Margin;
    for (std::size_t lane = 0; lane < widths.size(); ++lane) {
      int inner = 0;
      std::vector<int> begins;
      for (std::size_t column = 0; column < widths[lane].size(); ++column) {
        const int needed = widths[lane][column];
        const bool areLines =
            needed == PassingWidth && column > 0 && widths[lane][column - 1] == PassingWidth;
        inner += column == 0 ? 0 : areLines ? PassingGap : ColumnGap;
        begins.push_back(inner);
        inner += needed;
      }
      const int width = std::max(inner, laneWidths[lane]) + 2 * LanePadding;
      for (std::size_t column = 0; column < begins.size(); ++column)
        middles[lane].push_back(x + (width - inner) / 2 + begins[column] + widths[lane][column] / 2);
      layout.lanes.push_back({x, width});
      x += width + LaneGap;
    }
    layout.width = std::max(x - LaneGap, Margin) + Margin;
    std::vector<int> result;
    for (const Item &item : items)
      result.push_back(item.isOperation ? 0 : middles[item.lane][item.column]);
    return result;
  }

  /// Each operation below the middle of what meets in it, as far as there is room.
  void placeOperations(GraphLayout &layout, std::vector<int> &x) {
    std::vector<std::size_t> operations;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      if (!items[i].isOperation)
        continue;
      int sum = 0;
      for (std::size_t above : items[i].above)
        sum += x[above];
      x[i] = items[i].above.empty() ? layout.width / 2 : sum / static_cast<int>(items[i].above.size());
      operations.push_back(i);
    }
    std::sort(operations.begin(), operations.end(),
              [&](std::size_t a, std::size_t b) { return x[a] != x[b] ? x[a] < x[b] : a < b; });
    int free = Margin;
    for (std::size_t i : operations) {
      x[i] = std::max(x[i], free + items[i].width / 2);
      free = x[i] + items[i].width / 2 + ColumnGap;
    }
    layout.width = std::max(layout.width, free - ColumnGap + Margin);
  }

  /// The lines that reach or leave a box share its edge, in the order of where they come from.
  void placeLines(GraphLayout &layout, const std::vector<int> &x) {
    std::vector<std::vector<std::pair<int, std::size_t>>> arriving(graph.nodes.size()),
        leaving(graph.nodes.size());
    for (std::size_t i = 0; i < graph.edges.size(); ++i) {
      const std::vector<std::size_t> &chain = chains[i];
      leaving[chain.front()].emplace_back(x[chain[1]], i);
      arriving[chain.back()].emplace_back(x[chain[chain.size() - 2]], i);
    }
    std::vector<int> startX(graph.edges.size()), endX(graph.edges.size());
    const auto share = [&](std::vector<std::vector<std::pair<int, std::size_t>>> &sides,
                           std::vector<int> &result) {
      for (std::size_t node = 0; node < sides.size(); ++node) {
        std::sort(sides[node].begin(), sides[node].end());
        const int count = static_cast<int>(sides[node].size());
        const int step = std::min(28, items[node].width / (count + 1));
        for (int i = 0; i < count; ++i)
          result[sides[node][static_cast<std::size_t>(i)].second] = x[node] + (2 * i - count + 1) * step / 2;
      }
    };
    share(leaving, startX);
    share(arriving, endX);
    for (std::size_t i = 0; i < graph.edges.size(); ++i) {
      GraphLayout::Line line;
      line.isUpward = upward[i];
      const std::vector<std::size_t> &chain = chains[i];
      line.points.push_back({startX[i], bottomOf(items[chain.front()])});
      for (std::size_t each = 1; each + 1 < chain.size(); ++each) {
        line.points.push_back({x[chain[each]], topOf(items[chain[each]])});
        line.points.push_back({x[chain[each]], bottomOf(items[chain[each]])});
      }
      line.points.push_back({endX[i], topOf(items[chain.back()])});
      layout.lines.push_back(std::move(line));
    }
  }

  const DeviceGraph &graph;
  const std::vector<int> &laneWidths;
  const std::size_t boxesPerLane;
  std::vector<Item> items; ///< the nodes, then the passings
  std::vector<bool> upward;
  std::vector<std::vector<std::size_t>> below;
  std::vector<std::size_t> order;
  std::vector<std::vector<std::size_t>> chains; ///< by edge: items from top to bottom
  std::size_t layers = 0;                       ///< without that of the operations
  std::vector<int> layerTops, layerHeights;
};

} // namespace

GraphLayout layOut(const DeviceGraph &graph, const std::vector<BoxSize> &boxes,
                   const std::vector<int> &laneWidths) {
  GraphLayout layout = Layering(graph, boxes, laneWidths, 0).run();
  for (std::size_t most = MostColumns; layout.width > PageWidth && most > 0; --most)
    layout = Layering(graph, boxes, laneWidths, most).run();
  return layout;
}

} // namespace devicetidy
