#include "potential.h"

#include <cstring>

namespace mdnn {

NeighborGraph NeighborGraph::to(const torch::Device &device) const {
  NeighborGraph moved;
  moved.positions = positions.to(device);
  moved.species = species.to(device);
  moved.edge_index = edge_index.to(device);
  moved.shifts = shifts;
  moved.cell = cell.to(device);
  return moved;
}

NeighborGraph GraphBuilder::build(const AtomView &atoms) {
  TORCH_CHECK(atoms.nlocal > 0, "no atoms in this domain");
  const int64_t n = atoms.nlocal;
  if (!staging_.defined() || staging_.size(0) < n)
    staging_ = torch::empty({n, 3}, torch::kDouble);
  std::memcpy(staging_.data_ptr<double>(), atoms.x, sizeof(double) * 3 * n);

  NeighborGraph graph;
  graph.positions = staging_.slice(0, 0, n).to(torch::kFloat);
  auto types = torch::from_blob(const_cast<int *>(atoms.type), {n}, torch::kInt);
  graph.species = types.to(torch::kLong);
  graph.cell = torch::tensor({atoms.box[0], atoms.box[1], atoms.box[2]}, torch::kFloat);

  auto delta = graph.positions.unsqueeze(0) - graph.positions.unsqueeze(1);
  auto image = torch::round(delta / graph.cell);
  auto distance = (delta - image * graph.cell).norm(2, {-1});
  auto close = (distance < cutoff_) & ~torch::eye(n, torch::kBool);
  auto pairs = close.nonzero();
  graph.edge_index = pairs.t().contiguous();
  graph.shifts = -image.index({graph.edge_index[0], graph.edge_index[1]}) * graph.cell;
  return graph;
}

torch::Tensor GraphBuilder::degrees(const NeighborGraph &graph) const {
  auto counts = torch::zeros({graph.positions.size(0)}, graph.positions.options());
  if (graph.numEdges() == 0)
    return counts;
  auto ones = torch::ones({graph.numEdges()}, graph.edge_index.options().dtype(torch::kFloat));
  return counts.index_add_(0, graph.edge_index[0], ones);
}

std::vector<int64_t> GraphBuilder::neighborCounts(const NeighborGraph &graph) const {
  std::vector<int64_t> counts(static_cast<size_t>(graph.positions.size(0)), 0);
  const auto senders = graph.edge_index[0].to(torch::kCPU).contiguous();
  const int64_t *index = senders.data_ptr<int64_t>();
  for (int64_t e = 0; e < senders.numel(); ++e)
    ++counts[static_cast<size_t>(index[e])];
  return counts;
}

} // namespace mdnn
