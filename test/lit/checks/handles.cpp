// REQUIRES: torch
// RUN: not %device-tidy --level=latent %s %torch | FileCheck %s --implicit-check-not=warning:
//
// What C interfaces and maps hand over instead of tensors, and memory of tensors that nobody asks for.
#include <torch/library.h>
#include <torch/torch.h>

#include <cstring>
#include <map>
#include <optional>

typedef struct OpaqueTensor *tensor_t;
extern "C" int find_tensor(void *session, long id, void **out);
torch::Tensor *unwrap(long id);
const torch::Tensor &unwrapped(long id);

void ofPointer(tensor_t handle, char *out) {
  const auto *t = reinterpret_cast<const torch::Tensor *>(handle);
  if (t->is_cuda())
// CHECK: :[[@LINE+1]]:{{[0-9]+}}: warning: 'memcpy' works on memory of cpu
    std::memcpy(out, t->data_ptr(), 4);
}

void ofNumber(long handle, char *out) {
  auto *t = reinterpret_cast<torch::Tensor *>(handle);
  if (t->is_cuda())
// CHECK: :[[@LINE+1]]:{{[0-9]+}}: warning: 'memcpy' works on memory of cpu
    std::memcpy(out, t->data_ptr(), 4);
}

void written(void *session, long id, char *out) {
  torch::Tensor *t = nullptr;
  if (find_tensor(session, id, reinterpret_cast<void **>(&t)) && t->is_cuda())
// CHECK: :[[@LINE+1]]:{{[0-9]+}}: warning: 'memcpy' works on memory of cpu
    std::memcpy(out, t->data_ptr(), 4);
}

void returned(long id, char *out) {
  if (unwrap(id)->is_cuda())
// CHECK: :[[@LINE+1]]:{{[0-9]+}}: warning: 'memcpy' works on memory of cpu
    std::memcpy(out, unwrap(id)->data_ptr(), 4);
}

void referred(long id, char *out) {
  const torch::Tensor &t = unwrapped(id);
  if (t.is_cuda())
// CHECK: :[[@LINE+1]]:{{[0-9]+}}: warning: 'memcpy' works on memory of cpu
    std::memcpy(out, t.data_ptr(), 4);
}

void inArray(void **handles, char *out) {
  const auto *t = static_cast<torch::Tensor *>(handles[1]);
  if (t->is_cuda())
// CHECK: :[[@LINE+1]]:{{[0-9]+}}: warning: 'memcpy' works on memory of cpu
    std::memcpy(out, t->data_ptr(), 4);
}

void inMap(const std::map<std::string, torch::Tensor> &state, char *out) {
  const auto found = state.find("weight");
  if (found != state.end() && found->second.is_cuda())
// CHECK: :[[@LINE+1]]:{{[0-9]+}}: warning: 'memcpy' works on memory of cpu
    std::memcpy(out, found->second.data_ptr(), 4);
}

// Nobody here calls it, and it gives a tensor back.
torch::Tensor firstSegment(const torch::Tensor &values, const torch::Tensor &offsets) {
  const int64_t *starts = offsets.data_ptr<int64_t>();
// CHECK: :[[@LINE+1]]:{{[0-9]+}}: warning: 'starts[0]' works on memory of cpu and can get that of 'offsets'
  return values.slice(0, starts[0], starts[1]);
}

void scale_gpu(float *values, const float *factors, int64_t count);
void scale_cpu(float *values, const float *factors, int64_t count);

void scale(const torch::Tensor &values, const torch::Tensor &factors) {
  if (values.is_cuda())
// CHECK: :[[@LINE+1]]:{{[0-9]+}}: warning: 'scale_gpu' works on cuda:i and can get the memory of 'factors' on factors.device() [device-kernel-launch]
    scale_gpu(values.data_ptr<float>(), factors.data_ptr<float>(), values.numel());
  else
    scale_cpu(values.data_ptr<float>(), factors.data_ptr<float>(), values.numel());
}

void requireTogether(const torch::Tensor &one, std::initializer_list<std::pair<const char *, torch::Tensor>> others) {
  for (const auto &[name, other] : others) {
    if (!other.defined())
      continue;
    TORCH_CHECK(other.device() == one.device(), name, " is elsewhere");
  }
}

void scaleChecked(const torch::Tensor &values, const torch::Tensor &factors) {
  requireTogether(values, {{"factors", factors}});
  if (values.is_cuda())
    scale_gpu(values.data_ptr<float>(), factors.data_ptr<float>(), values.numel());
  else
    scale_cpu(values.data_ptr<float>(), factors.data_ptr<float>(), values.numel());
}

// The dispatcher calls it with tensors on the CPU alone.
torch::Tensor lastSegment(const torch::Tensor &values, const torch::Tensor &offsets) {
  return values.slice(0, offsets.data_ptr<int64_t>()[0]);
}

TORCH_LIBRARY_FRAGMENT(handles, m) {
  m.impl("last_segment", torch::dispatch(c10::DispatchKey::CPU, TORCH_FN(lastSegment)));
}
