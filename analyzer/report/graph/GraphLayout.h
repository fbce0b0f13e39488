//===- GraphLayout.h - where the boxes of a picture go ----------*- C++ -*-===//
//
// Layers from top to bottom in the order of events, and in each lane as many columns as nodes are side by
// side. Where that is wider than a page, boxes move down until it fits or stand one below the other. A way
// past several layers keeps a column of its own, so no line crosses a box of its lane.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/graph/DeviceGraph.h"

#include <vector>

namespace devicetidy {

struct Point {
  int x = 0, y = 0;
};

struct GraphLayout {
  struct Lane {
    int x = 0, width = 0;
  };
  struct Box {
    int x = 0, y = 0, width = 0, height = 0; ///< top left corner
  };
  struct Line {
    std::vector<Point> points; ///< from box to box, top to bottom; pairs of them are straight
    bool isUpward = false;     ///< the edge goes back: its end is the first point
  };
  int width = 0, height = 0;
  int laneHeight = 0; ///< the operations are below the lanes
  std::vector<Lane> lanes;
  std::vector<Box> boxes;  ///< as DeviceGraph::nodes
  std::vector<Line> lines; ///< as DeviceGraph::edges
};

struct BoxSize {
  int width = 0, height = 0;
};

/// `boxes` and `laneWidths`: what the text of each node and of each lane's head needs.
GraphLayout layOut(const DeviceGraph &graph, const std::vector<BoxSize> &boxes,
                   const std::vector<int> &laneWidths);

} // namespace devicetidy
