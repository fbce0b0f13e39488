#include "../cases.h"

#include <torch/torch.h>
using torch::indexing::Slice;
using torch::indexing::None;
void a_bad() {
  auto a = torch::rand({3, 4}, torch::kCUDA), b = torch::rand({2, 4});
  auto lt = torch::max(a.index({Slice(), None, Slice(0, 2)}), b.index({None, Slice(), Slice(0, 2)})); // [[device-mixed-op]]
}
void b_bad() {
  auto a = torch::rand({3, 4}, torch::kCUDA), b = torch::rand({3, 4});
  auto lt = torch::max(a.index({Slice(), Slice(0, 2)}), b.index({Slice(), Slice(0, 2)})); // [[device-mixed-op]]
}
void c_bad() {
  auto a = torch::rand({3, 4}, torch::kCUDA), b = torch::rand({3, 4});
  auto lt = a.index({Slice(), None}) + b.index({Slice(), None}); // [[device-mixed-op]]
}
void d_bad() {
  auto a = torch::rand({3, 4}, torch::kCUDA), b = torch::rand({3, 4});
  auto lt = torch::max(a, b); // [[device-mixed-op]]
}
void e_bad() {
  auto a = torch::rand({3, 4}, torch::kCUDA), b = torch::rand({3, 4});
  auto lt = torch::min(a.narrow(1, 0, 2), b.narrow(1, 0, 2)); // [[device-mixed-op]]
}

DT_MAIN(a_bad, b_bad, c_bad, d_bad, e_bad)
