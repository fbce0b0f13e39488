//===- NodePointer.h - how autograd holds its nodes -------------*- C++ -*-===//
//
// A shared pointer to a node of a graph: std::shared_ptr, and c10::intrusive_ptr in LibTorch 2.13.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <memory>
#include <type_traits>
#include <utility>

namespace device_shim::detail {

using NodePointer = decltype(torch::autograd::Edge::function);

template <typename Node, typename... Arguments> auto makeNode(Arguments &&...arguments) {
  if constexpr (std::is_same_v<NodePointer, std::shared_ptr<torch::autograd::Node>>)
    return std::make_shared<Node>(std::forward<Arguments>(arguments)...);
  else
    return c10::make_intrusive<Node>(std::forward<Arguments>(arguments)...);
}

} // namespace device_shim::detail
