// REQUIRES: torch
// RUN: not %device-tidy --checks=device-host-access %s %torch | FileCheck %s --implicit-check-not=warning:
#include <torch/torch.h>

#include <algorithm>
#include <cstring>
#include <vector>

void kernel(float *values, int64_t count);

// CHECK: [[@LINE+5]]:{{[0-9]+}}: warning: 'y[1]' works on memory of cpu and gets that of '(*p)' on cuda [device-host-access]
// CHECK: note: created on cuda by 'torch::rand' here
// CHECK: note: copy the tensor to the host first, and keep the copy while its memory is used: 'auto host = (*p).cpu();'
float read() {
  auto x = torch::rand({4}, torch::kCUDA), *p = &x; float *y = p->data_ptr<float>();
  kernel(y, 4); return y[1];
}

// CHECK: [[@LINE+4]]:{{[0-9]+}}: warning: '=' works on memory of cpu and gets that of 'x' on cuda:1 [device-host-access]
void write() {
  auto x = torch::rand({4}).to(torch::Device(torch::kCUDA, 1));
  float *values = x.data_ptr<float>() + 1;
  *values++ = 2;
}

// CHECK: [[@LINE+2]]:{{[0-9]+}}: warning: 'memcpy' works on memory of cpu and can get that of 'x' on device [device-host-access]
void chosen(torch::Tensor x, std::vector<char> &out, torch::Device device) {
  x = x.to(device); std::memcpy(out.data(), x.data_ptr(), x.nbytes());
}

// CHECK: [[@LINE+4]]:{{[0-9]+}}: warning: 'from_blob' works on memory of cuda and gets that of 'v.data()' on cpu [device-host-access]
// CHECK: note: leave the device out of the options, and move the tensor that from_blob makes
void blobs() {
  std::vector<float> v(4);
  auto a = torch::from_blob(v.data(), {4}, torch::kCUDA);
  auto b = torch::from_blob(v.data(), {4}).cuda();
  auto c = torch::from_blob(b.data_ptr(), {4}, b.options());
  // CHECK: [[@LINE+2]]:{{[0-9]+}}: warning: 'from_blob' works on memory of cpu and gets that of 'b' on cuda [device-host-access]
  // CHECK: note: pass from_blob the device of the memory: 'b.options()'
  auto d = torch::from_blob(b.data_ptr(), {4});
}

// Pointers among pointers.
void pointers() {
  auto x = torch::rand({4}, torch::kCUDA);
  std::vector<float *> many(3, x.data_ptr<float>());
  many.insert(many.begin(), x.data_ptr<float>());
  many.assign(2, x.data_ptr<float>());
  std::fill(many.begin(), many.end(), x.data_ptr<float>());
  float *array[2];
  std::fill_n(array, 2, x.data_ptr<float>());
  (void)std::find(array, array + 2, x.data_ptr<float>());
}

// What comes from outside is not known; a branch that has asked is.
float asked(torch::Tensor x) {
  if (x.is_cuda())
    return x.cpu().data_ptr<float>()[0];
  return x.accessor<float, 1>()[0];
}
