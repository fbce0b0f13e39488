#include "Generator.h"

#include "Compat.h"
#include "Devices.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>

#include <cstring>
#include <mutex>
#include <vector>

namespace vcuda {
namespace {

// A seed of 64 bits, and how far the generator is.
constexpr int64_t kSeedBytes = sizeof(uint64_t), kStateBytes = kSeedBytes + sizeof(uint64_t);

// CUDA's generators step by multiples of four.
constexpr uint64_t kStep = 4;

// Neighbouring seeds and places give unrelated numbers (splitmix64).
uint64_t mixed(uint64_t seed, uint64_t place) {
  uint64_t value = seed + 0x9e3779b97f4a7c15U * (place / kStep + 1);
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

// As in CUDA each operator draws from the seed and the place, and moves the place on: a state is 16 bytes.
// Here an engine of the CPU starts there.
class GeneratorImpl final : public GeneratorBase {
public:
  explicit GeneratorImpl(int device)
      : GeneratorBase(c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device)),
                      c10::DispatchKeySet(c10::DispatchKey::CUDA)),
        engine_(at::detail::createCPUGenerator()) {}

  void set_current_seed(uint64_t seed) override {
    seed_ = seed;
    set_offset(0);
  }
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom(/*is_cuda=*/true));
    return seed_;
  }

  // As CUDA takes it: the seed may stand alone.
  void set_state(const c10::TensorImpl &state) override {
    at::detail::check_rng_state(state);
    const int64_t bytes = state.numel();
    TORCH_CHECK(bytes == kStateBytes || bytes == kSeedBytes, "RNG state is wrong size");
    const auto *data = static_cast<const char *>(state.data());
    uint64_t seed = 0, offset = 0;
    std::memcpy(&seed, data, kSeedBytes);
    if (bytes == kStateBytes)
      std::memcpy(&offset, data + kSeedBytes, sizeof(offset));
    set_current_seed(seed);
    set_offset(offset);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    at::Tensor state = at::Tensor(at::detail::empty_cpu({kStateBytes}, at::TensorOptions().dtype(at::kByte)));
    auto *data = static_cast<char *>(state.data_ptr());
    const uint64_t offset = get_offset();
    std::memcpy(data, &seed_, kSeedBytes);
    std::memcpy(data + kSeedBytes, &offset, sizeof(offset));
    return state.getIntrusivePtr();
  }

  /// For one operator.
  const at::Generator &startedEngine() {
    std::scoped_lock lock(mutex_, engine_.mutex());
    engine_.set_current_seed(mixed(seed_, get_offset()));
    set_offset(get_offset() + kStep);
    return engine_;
  }

private:
  GeneratorImpl *clone_impl() const override {
    auto *copy = new GeneratorImpl(device().index());
    copy->seed_ = seed_;
    copy->set_offset(get_offset());
    return copy;
  }

  uint64_t seed_ = c10::default_rng_seed_val;
  at::Generator engine_;
};

} // namespace

at::Generator createGenerator(int device) {
  int index = withIndex(c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device))).index();
  return at::make_generator<GeneratorImpl>(index);
}

const at::Generator &defaultGenerator(int device) {
  static const std::vector<at::Generator> generators = [] {
    std::vector<at::Generator> all;
    for (int i = 0; i < deviceCount(); ++i)
      all.push_back(createGenerator(i));
    return all;
  }();
  int index = device < 0 ? currentDevice() : device;
  TORCH_CHECK(index < deviceCount(), "CUDA generator of device ", index, ", but there are ", deviceCount());
  return generators[static_cast<size_t>(index)];
}

at::Generator hostGenerator(const at::Generator &generator, bool onCpu) {
  TORCH_CHECK(!onCpu || !generator.device().is_cuda(),
              "Expected a 'cpu' device type for generator but found 'cuda'");
  TORCH_CHECK(generator.device().is_cuda(), "Expected a 'cuda' device type for generator but found '",
              generator.device().type(), "'");
  return static_cast<GeneratorImpl *>(generator.unsafeGetGeneratorImpl())->startedEngine();
}

} // namespace vcuda
