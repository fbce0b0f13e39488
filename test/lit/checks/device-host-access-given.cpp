// REQUIRES: torch
// RUN: not %device-tidy --level=latent --checks=device-host-access %s %torch | FileCheck %s --implicit-check-not=warning:
// RUN: not %device-tidy --checks=device-host-access %s %torch | FileCheck %s --check-prefix=LIKELY --implicit-check-not=warning:
//
// Memory that a caller passes, or the dispatcher, and memory that libraries make and read.
#include <torch/library.h>
#include <torch/torch.h>

struct JNIEnv_ {
  void *GetDirectBufferAddress(void *buffer);
  void *NewDirectByteBuffer(void *memory, long size);
};

torch::Device deviceOf(int type, int index) { return type == 0 ? torch::Device(torch::kCPU) : torch::Device(torch::kCUDA, index); }

// CHECK: [[@LINE+4]]:{{[0-9]+}}: warning: 'from_blob' works on memory of cuda:index and can get that of 'data' on cpu [device-host-access]
// CHECK: note: leave the device out of the options, and move the tensor that from_blob makes
torch::Tensor wrap(void *data, int64_t count, int type, int index) {
  const auto options = torch::TensorOptions().device(deviceOf(type, index));
  return torch::from_blob(data, {count}, options);
}

// A device by name is chosen as well where another way takes the CPU.
constexpr c10::DeviceType kindOf(int type) {
  switch (type) {
  case 1:
    return torch::kCUDA;
  default:
    return torch::kCPU;
  }
}

// CHECK: [[@LINE+2]]:{{[0-9]+}}: warning: 'from_blob' works on memory of cuda and can get that of 'data' on cpu [device-host-access]
torch::Tensor wrapOnKind(void *data, int64_t count, int type) {
  return torch::from_blob(data, {count}, torch::dtype(torch::kFloat32).device(kindOf(type)));
}

torch::Tensor wrapAndMove(void *data, int64_t count, int type, int index) {
  return torch::from_blob(data, {count}).to(deviceOf(type, index));
}

torch::Tensor wrapNamed(void *device_data, int64_t count, torch::Device device) { return torch::from_blob(device_data, {count}, device); }

// The memory of the current GPU, which no caller chooses.
torch::Tensor wrapDevice(float *data, int64_t count) { return torch::from_blob(data, {count}, torch::kCUDA); }

// CHECK: [[@LINE+2]]:{{[0-9]+}}: warning: 'from_blob' works on memory of device and can get that of 'env->GetDirectBufferAddress(buffer)' on cpu [device-host-access]
// LIKELY: [[@LINE+1]]:{{[0-9]+}}: warning: 'from_blob' works on memory of device and can get that of 'env->GetDirectBufferAddress(buffer)' on cpu [device-host-access]
torch::Tensor fromJava(JNIEnv_ *env, void *buffer, torch::Device device) { return torch::from_blob(env->GetDirectBufferAddress(buffer), {4}, device); }

// A storage around memory of the host.
// CHECK: [[@LINE+5]]:{{[0-9]+}}: warning: 'DataPtr' works on memory of handle.device() and can get that of 'env->GetDirectBufferAddress(buffer)' on cpu [device-host-access]
// CHECK: note: say that the memory is that of the host, and move the tensor that is made of it
// LIKELY: [[@LINE+3]]:{{[0-9]+}}: warning: 'DataPtr' works on memory of handle.device() and can get that of 'env->GetDirectBufferAddress(buffer)' on cpu [device-host-access]
void setFromJava(JNIEnv_ *env, long handle, void *buffer) {
  const auto *tensor = reinterpret_cast<torch::Tensor *>(handle);
  c10::Storage storage(c10::Storage::use_byte_size_t(), 16, c10::DataPtr(env->GetDirectBufferAddress(buffer), tensor->device()), nullptr, false);
  tensor->set_(storage, 0, {4});
}

// CHECK: [[@LINE+4]]:{{[0-9]+}}: warning: 'JNIEnv_::NewDirectByteBuffer' works on memory of cpu and can get that of 'moved' on device [device-host-access]
// LIKELY: [[@LINE+3]]:{{[0-9]+}}: warning: 'JNIEnv_::NewDirectByteBuffer' works on memory of cpu and can get that of 'moved' on device [device-host-access]
void *toJava(JNIEnv_ *env, torch::Tensor tensor, torch::Device device) {
  const auto moved = tensor.to(device);
  return env->NewDirectByteBuffer(moved.data_ptr(), long(moved.nbytes()));
}

// What is on a GPU shows that there is one.
static bool hasGpu = false;
static void askForGpu() {
  if (torch::cuda::is_available())
    hasGpu = true;
}

static bool isOnHost(const torch::Tensor &x) {
  if (x.device().type() == torch::kCPU)
    return true;
  TORCH_CHECK(x.is_cuda());
  askForGpu();
  return !hasGpu;
}

float firstOnHost(torch::Tensor x) {
  const bool isHere = isOnHost(x);
  return isHere ? x.data_ptr<float>()[0] : 0;
}

// CHECK: [[@LINE+3]]:{{[0-9]+}}: warning: 'lengths.data_ptr<int64_t>()[0]' works on memory of cpu and can get that of 'lengths' on lengths.device() [device-host-access]
// A tensor beside the first one.
torch::Tensor firstOf(const torch::Tensor &input, const torch::Tensor &lengths) {
  return input.narrow(0, 0, lengths.data_ptr<int64_t>()[0]);
}

TORCH_LIBRARY_IMPL(given, CUDA, m) { m.impl("first_of", TORCH_FN(firstOf)); }
