// Calls through std::bind, member pointers, threads, futures, visitors and library algorithms.
#include "../cases.h"

#include <torch/torch.h>

#include <functional>
#include <future>
#include <numeric>
#include <thread>
#include <variant>

using torch::Tensor;

namespace {

Tensor onGpu() { return torch::ones({2}, torch::kCUDA); }

struct BoundMetric {
  Tensor reference = torch::zeros({2});
  Tensor distance(const Tensor& x) const { return (x - reference).abs(); } // [[device-mixed-op]]
};
void bound_member_bad() {
  BoundMetric metric;
  auto distance = std::bind(&BoundMetric::distance, &metric, std::placeholders::_1);
  distance(onGpu());
}

struct PointedMetric {
  Tensor reference = torch::zeros({2});
  Tensor distance(const Tensor& x) const { return (x - reference).abs(); } // [[device-mixed-op]]
};
void member_pointer_bad() {
  PointedMetric metric;
  auto distance = &PointedMetric::distance;
  (metric.*distance)(onGpu());
}

struct QuietMetric {
  Tensor reference = torch::zeros({2}, torch::kCUDA);
  Tensor distance(const Tensor& x) const { return (x - reference).abs(); }
};
void bound_member_ok() {
  QuietMetric metric;
  auto distance = std::bind(&QuietMetric::distance, &metric, std::placeholders::_1);
  distance(onGpu());
  auto pointer = &QuietMetric::distance;
  (metric.*pointer)(onGpu());
  std::invoke(&QuietMetric::distance, metric, onGpu());
}

struct LateMetric {
  Tensor reference = torch::zeros({2});
  Tensor distance(const Tensor& x) const { return (x - reference).abs(); } // [[device-mixed-op]]
};
void async_member_bad() {
  LateMetric metric;
  auto later = std::async(std::launch::async, &LateMetric::distance, &metric, onGpu());
  later.get();
}

void future_value_bad() {
  auto later = std::async(std::launch::async, [] { return onGpu(); });
  auto y = later.get() + torch::ones({2}); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}
void future_value_ok() {
  auto later = std::async(std::launch::async, [] { return onGpu(); });
  auto y = later.get() + onGpu();
  TORCH_CHECK(y.defined());
}

// A device error in a thread ends the program, so these catch it and hand it on.
void worker_thread_bad() {
  Tensor x = onGpu();
  std::exception_ptr failed;
  std::thread worker([&] {
    try {
      auto y = x + torch::ones({2}); // [[device-mixed-op]]
    } catch (...) {
      failed = std::current_exception();
    }
  });
  worker.join();
  if (failed)
    std::rethrow_exception(failed);
}
void worker_threads_ok() {
  Tensor x = onGpu();
  std::vector<std::thread> workers;
  for (int i = 0; i < 3; ++i)
    workers.emplace_back([&x] { auto y = x + torch::ones({2}, x.options()); });
  for (auto& worker : workers)
    worker.join();
}

void transform_into_inserter_bad() {
  std::vector<Tensor> parts{torch::ones({2}), torch::ones({2})}, moved;
  std::transform(parts.begin(), parts.end(), std::back_inserter(moved),
                 [](const Tensor& part) { return part.to(torch::kCUDA); });
  auto y = torch::stack(moved) * torch::ones({2, 2}); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}
void transform_into_inserter_ok() {
  std::vector<Tensor> parts{torch::ones({2}), torch::ones({2})}, moved;
  std::transform(parts.begin(), parts.end(), std::back_inserter(moved),
                 [](const Tensor& part) { return part.to(torch::kCUDA); });
  auto y = torch::stack(moved) * torch::ones({2, 2}, torch::kCUDA);
  TORCH_CHECK(y.defined());
}

void sum_of_parts_bad() {
  std::vector<Tensor> parts;
  for (int i = 0; i < 9; ++i)
    parts.push_back(onGpu());
  auto sum = std::accumulate(parts.begin(), parts.end(), torch::zeros({2})); // [[device-mixed-op]]
  TORCH_CHECK(sum.defined());
}
void sum_of_parts_ok() {
  std::vector<Tensor> parts;
  for (int i = 0; i < 9; ++i)
    parts.push_back(onGpu());
  auto sum = std::accumulate(parts.begin(), parts.end(), torch::zeros({})); // a 0-dim CPU scalar may join
  TORCH_CHECK(sum.defined());
}

using Input = std::variant<Tensor, std::vector<Tensor>>;
Tensor joined(const Input& input) {
  if (std::holds_alternative<Tensor>(input))
    return std::get<Tensor>(input);
  return torch::cat(std::get<std::vector<Tensor>>(input));
}
void variant_list_bad() {
  Input input = std::vector<Tensor>{onGpu(), onGpu()};
  auto y = joined(input) * torch::ones({4}); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}
void variant_list_ok() {
  Input input = std::vector<Tensor>{onGpu(), onGpu()};
  auto y = joined(input) * torch::ones({4}, torch::kCUDA);
  input = torch::ones({2});
  y = joined(input) * torch::ones({2});
  TORCH_CHECK(y.defined());
}
void variant_pointer_bad() {
  Input input = onGpu();
  if (auto* tensor = std::get_if<Tensor>(&input))
    tensor->add_(torch::ones({2})); // [[device-mixed-op]]
}
void visited_bad() {
  Input input = onGpu();
  auto seen = std::visit(
      [](auto&& held) -> Tensor {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, Tensor>)
          return held;
        else
          return torch::cat(held);
      },
      input);
  auto y = seen * torch::ones({2}); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

} // namespace

DT_MAIN(bound_member_bad, member_pointer_bad, bound_member_ok, async_member_bad, future_value_bad,
        future_value_ok, worker_thread_bad, worker_threads_ok, transform_into_inserter_bad,
        transform_into_inserter_ok, sum_of_parts_bad, sum_of_parts_ok, variant_list_bad, variant_list_ok,
        variant_pointer_bad, visited_bad)
