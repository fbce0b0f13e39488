#include "Generator.h"

#include "Compat.h"
#include "Devices.h"

#include <ATen/CPUGeneratorImpl.h>

#include <vector>

namespace vcuda {
namespace {

class GeneratorImpl final : public GeneratorBase {
public:
  GeneratorImpl(int device, at::Generator engine)
      : GeneratorBase(c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device)),
                      c10::DispatchKeySet(c10::DispatchKey::CUDA)),
        engine_(std::move(engine)) {}

  void set_current_seed(uint64_t seed) override { engine_.set_current_seed(seed); }
  uint64_t current_seed() const override { return engine_.current_seed(); }
  uint64_t seed() override { return engine_.seed(); }
  void set_state(const c10::TensorImpl &state) override {
    engine_.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return engine_.unsafeGetGeneratorImpl()->get_state();
  }
  const at::Generator &engine() const { return engine_; }

private:
  GeneratorImpl *clone_impl() const override { return new GeneratorImpl(device().index(), engine_.clone()); }

  at::Generator engine_;
};

} // namespace

at::Generator createGenerator(int device) {
  int index = withIndex(c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device))).index();
  return at::make_generator<GeneratorImpl>(index, at::detail::createCPUGenerator());
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
  return static_cast<GeneratorImpl *>(generator.unsafeGetGeneratorImpl())->engine();
}

} // namespace vcuda
