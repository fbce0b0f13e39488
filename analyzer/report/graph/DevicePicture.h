//===- DevicePicture.h - a device graph as SVG and DOT ----------*- C++ -*-===//
//
// Draws a DeviceGraph, and gives each device its colour.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/graph/DeviceGraph.h"

#include <map>
#include <string>

namespace devicetidy {

/// Which colour a device has. On one page a device has one colour.
class DeviceColours {
public:
  static constexpr std::size_t count = 8; ///< more devices than this share colours

  void add(const std::string &device) { devices.emplace(device, 0); }
  /// Call this after the last add().
  void assign();
  /// The class of the style sheet: "d0" ... "d7", "du" for an unknown device.
  std::string styleOf(const std::string &device) const;

private:
  std::map<std::string, std::size_t> devices;
};

/// Style sheet of the pictures, and of `.chip`, `mark` with the class of a device; light, and dark where the
/// reader prefers that.
std::string pictureStyle();

/// An <svg> element for a page that has pictureStyle(). `id` is unique on the page. Without `isStandalone`
/// the namespace is that of HTML; with it the element is a file of its own and brings the style sheet.
std::string svgOf(const DeviceGraph &graph, const DeviceColours &colours, const std::string &id,
                  bool isStandalone = false);

/// The graph in the language of Graphviz, a cluster for each device. Paths are relative to `root`.
std::string dotOf(const DeviceGraph &graph, const std::string &root);

/// "train.cpp:12", for labels.
std::string shortPlace(const Location &where);

/// "lines 4, 7".
std::string linesOf(const GraphItem &item);

/// The second line of a box: what happens, or where the place is.
std::string captionOf(const GraphNode &node, const DeviceGraph &graph);

} // namespace devicetidy
