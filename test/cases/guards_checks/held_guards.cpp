// Device guards that a class, a smart pointer or an optional holds: what was current comes back when the holder ends.
#include "../cases.h"

#include <c10/core/DeviceGuard.h>

#include <memory>
#include <optional>
#include <torch/torch.h>

namespace {

torch::Device gpu(int index) { return torch::Device(torch::kCUDA, static_cast<torch::DeviceIndex>(index)); }

// Ends a region of code that works for one worker.
class WorkerScope {
public:
  explicit WorkerScope(int worker) : name("worker"), guard(gpu(worker)) {}

private:
  std::string name;
  c10::DeviceGuard guard;
};

void after_the_scope_bad() {
  auto state = torch::rand({2, 3}, gpu(1));
  {
    WorkerScope scope(1);
    state += torch::ones({2, 3}, torch::kCUDA);
  }
  auto noise = torch::rand({2, 3}, torch::kCUDA);
  state += noise; // [[device-mixed-op]]
}
void within_the_scope_ok() {
  auto state = torch::rand({2, 3}, gpu(1));
  WorkerScope scope(1);
  state += torch::ones({2, 3}, torch::kCUDA);
  auto noise = torch::rand({2, 3}, torch::kCUDA);
  state += noise;
}

void held_by_pointer_bad() {
  auto state = torch::rand({2, 3}, gpu(1));
  auto scope = std::make_unique<WorkerScope>(1);
  state += torch::ones({2, 3}, torch::kCUDA);
  scope.reset();
  state += torch::ones({2, 3}, torch::kCUDA); // [[device-mixed-op]]
}
void held_by_pointer_ok() {
  auto first = torch::rand({2, 3}, gpu(0));
  {
    auto scope = std::make_unique<WorkerScope>(1);
    auto second = torch::rand({2, 3}, gpu(1)) + torch::ones({2, 3}, torch::kCUDA);
  }
  first += torch::ones({2, 3}, torch::kCUDA);
}

void held_by_optional_bad() {
  std::optional<c10::DeviceGuard> guard;
  auto state = torch::rand({2, 3}, gpu(0));
  guard.emplace(gpu(1));
  state += torch::ones({2, 3}, torch::kCUDA); // [[device-mixed-op]]
}
void held_by_optional_ok() {
  std::optional<c10::DeviceGuard> guard;
  auto state = torch::rand({2, 3}, gpu(0));
  guard.emplace(gpu(1));
  auto other = torch::rand({2, 3}, gpu(1)) + torch::ones({2, 3}, torch::kCUDA);
  guard.reset();
  state += torch::ones({2, 3}, torch::kCUDA);
}

} // namespace

DT_MAIN(after_the_scope_bad, within_the_scope_ok, held_by_pointer_bad, held_by_pointer_ok, held_by_optional_bad,
        held_by_optional_ok)
