#include "sharded/GradientSum.h"

#include "base/Compat.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace device_shim::detail {
namespace {

// One is added up while the next is exchanged.
constexpr size_t kUnderWay = 2;

} // namespace

GradientSum::GradientSum(const Layout &wanted, MemoryCount &count) : layout(wanted), memory(count) {}

void GradientSum::hold(const at::Tensor &tensor, int64_t times) {
  memory.add(times * tensor.numel() * static_cast<int64_t>(tensor.element_size()));
}

void GradientSum::take(int64_t offset, const at::Tensor &gradient) {
  given.push_back({offset, gradient.detach().reshape({-1})});
  hold(given.back().values, 1);
}

void GradientSum::start(Communicator &all, const at::Tensor &total) {
  ranks = &all;
  sent = 0;
  adds = total.defined();
  part = adds ? total : at::empty({layout.partSize}, layout.options.dtype(layout.sumType));
  if (!adds)
    hold(part, 1);
  while (sent < layout.partSize) {
    if (pieces.size() == kUnderWay)
      finishFirst();
    sendNext();
  }
}

void GradientSum::sendNext() {
  const int64_t size = std::min(layout.pieceSize, layout.partSize - sent);
  Piece piece{pieceOf(sent, size), part.narrow(0, sent, size), sent, {}};
  if (adds)
    piece.sum = at::empty({size}, layout.options.dtype(layout.sumType));
  hold(piece.values, 1);
  piece.pending = ranks->reduce_scatter_async(piece.sum, piece.values);
  pieces.push_back(std::move(piece));
  sent += size;
  dropSent();
}

at::Tensor GradientSum::pieceOf(int64_t first, int64_t size) const {
  auto piece = at::zeros({size * layout.rankCount}, layout.options);
  for (int rank = 0; rank < layout.rankCount; ++rank) {
    const int64_t begin = rank * layout.partSize + first;
    for (const auto &[offset, values] : given) {
      const auto from = std::max(begin, offset), to = std::min(begin + size, offset + values.numel());
      if (from < to)
        piece.narrow(0, rank * size + from - begin, to - from)
            .copy_(values.narrow(0, from - offset, to - from));
    }
  }
  return piece.div_(layout.rankCount);
}

// The last of the elements, counted in the parts that have some.
int64_t GradientSum::lastInPart(const Given &each) const {
  const int64_t last = each.offset + each.values.numel() - 1;
  const bool inOnePart = each.offset / layout.partSize == last / layout.partSize;
  return inOnePart ? last % layout.partSize : layout.partSize - 1;
}

void GradientSum::dropSent() {
  const auto isSent = [&](const Given &each) {
    const bool all = lastInPart(each) < sent;
    if (all)
      hold(each.values, -1);
    return all;
  };
  given.erase(std::remove_if(given.begin(), given.end(), isSent), given.end());
}

void GradientSum::finishFirst() {
  auto &piece = pieces.front();
  piece.pending.wait();
  if (adds)
    part.narrow(0, piece.first, piece.sum.numel()).add_(piece.sum);
  hold(piece.values, -1);
  pieces.pop_front();
}

at::Tensor GradientSum::finish() {
  while (!pieces.empty())
    finishFirst();
  if (part.defined() && !adds)
    hold(part, -1);
  return std::exchange(part, at::Tensor());
}

void GradientSum::abandon() noexcept {
  try {
    for (auto &piece : pieces)
      piece.pending.wait();
    if (!pieces.empty() && layout.options.device().is_cuda())
      compat::synchronize(compat::currentStream(layout.options.device()));
  } catch (const std::exception &) {
  }
  for (const auto &piece : pieces)
    hold(piece.values, -1);
  for (const auto &each : given)
    hold(each.values, -1);
  if (part.defined() && !adds)
    hold(part, -1);
  pieces.clear();
  given.clear();
  part = at::Tensor();
}

} // namespace device_shim::detail
