//===- DeviceGraph.h - devices, and how tensors come to them ----*- C++ -*-===//
//
// What the pictures show, as plain values: a lane for each device, a node for each step of a tensor's history
// in the lane of the device it leaves the tensor on, and an edge from each step to the next.
// DevicePicture.h draws it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/finding/Finding.h"
#include "analyzer/report/source/Source.h"

#include <cstddef>
#include <string>
#include <vector>

namespace devicetidy {

enum class NodeKind : std::uint8_t {
  Step,      ///< something that happens to the tensor
  Place,     ///< a variable or expression that is there
  Operation, ///< tensors of different devices meet; in no lane
};

/// A variable or expression, and the lines that read it.
struct GraphItem {
  std::string name;
  std::vector<std::uint32_t> lines; ///< ascending
};

struct GraphNode {
  NodeKind kind = NodeKind::Step;
  std::size_t lane = 0;         ///< index of DeviceGraph::devices; no meaning for an Operation
  std::string name;             ///< what it is about: a variable, a factory, an operation
  std::string event;            ///< what happens: "created", "moved"
  bool isMove = false;          ///< `event` goes on with the name of the lane: "moved to cuda:0"
  Location where;               ///< invalid: no particular place
  std::vector<GraphItem> items; ///< what is there since, listed in the box
};

struct GraphEdge {
  std::size_t from = 0, to = 0; ///< indices of DeviceGraph::nodes
  Location where;               ///< where the tensor moves along it
};

struct DeviceGraph {
  std::vector<std::string> devices; ///< cpu first; "" is the unknown device and comes last
  std::vector<GraphNode> nodes;
  std::vector<GraphEdge> edges;
  std::string title, description; ///< for readers who cannot see it

  bool empty() const { return nodes.empty(); }
};

/// Orders devices as the lanes are: "cpu", the others by name, then "".
bool deviceBefore(const std::string &a, const std::string &b);

/// Builds a graph. Steps that several histories share become one node.
class GraphBuilder {
public:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  /// Adds the steps of a history that ends on `device`, after the node `before`; the node of its last step,
  /// or `before` without steps.
  std::size_t addHistory(const std::vector<Step> &steps, const std::string &device,
                         std::size_t before = none);
  /// The node of an expression, made where there is none for this text, place, device and step before.
  std::size_t addPlace(const std::string &text, const std::string &device, std::size_t before,
                       const Location &where);
  std::size_t addOperation(const std::string &name, const std::string &event, const Location &where);
  void connect(std::size_t from, std::size_t to, const Location &where);
  /// The graph, its lanes in order. The builder is empty afterwards.
  DeviceGraph take();

private:
  std::size_t addNode(GraphNode node, const std::string &device, const std::string &key);

  DeviceGraph graph;
  std::vector<std::string> deviceOf; ///< by node
  std::map<std::string, std::size_t> known;
};

/// The picture of a finding: the histories of its tensors up to the operation where they meet. Empty when it
/// has none.
DeviceGraph graphOf(const Finding &finding, SourceCache &sources);

} // namespace devicetidy
