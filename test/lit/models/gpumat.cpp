// The worked example of docs/models.md: OpenCV's GPU matrices, known by a file of rows alone.
// RUN: not %device-tidy --models=%S/Inputs/opencv.models %s -- -std=c++17 -I%S/Inputs > %t.txt
// RUN: FileCheck %s < %t.txt
// RUN: %device-tidy %s -- -std=c++17 -I%S/Inputs | count 0
#include "gpu_mat.h"

void mixed(const char *name) {
  cv::Mat frame = cv::imread(name);
  cv::cuda::GpuMat gpu, sum;
  gpu.upload(frame);
  // CHECK: [[@LINE+1]]:3: warning: 'cv::cuda::add' gets 'gpu' on cuda and 'frame' on cpu [device-mixed-op]
  cv::cuda::add(gpu, frame, sum);
}

void twoDevices(const char *name) {
  cv::Mat frame = cv::imread(name);
  cv::cuda::GpuMat first, second, sum;
  cv::cuda::setDevice(0);
  first.upload(frame);
  cv::cuda::setDevice(1);
  second.upload(frame);
  // CHECK: [[@LINE+1]]:3: warning: 'cv::cuda::add' gets 'first' on cuda:0 and 'second' on cuda:1 [device-mixed-op]
  cv::cuda::add(first, second, sum);
}

void onTheHost(const char *name) {
  cv::Mat frame = cv::imread(name), out;
  cv::cuda::GpuMat gpu(frame), sum;
  cv::cuda::add(gpu, gpu, sum);
  // CHECK: [[@LINE+1]]:3: warning: 'cv::add' {{.*}} 'sum' on cuda [device-host-access]
  cv::add(sum, frame, out);
}

// No repair is offered that OpenCV does not have.
// CHECK-NOT: .to(
// CHECK-NOT: warning:
void right(const char *name) {
  cv::Mat frame = cv::imread(name), out;
  cv::cuda::GpuMat gpu, sum;
  gpu.upload(frame);
  cv::cuda::add(gpu, gpu.clone(), sum);
  cv::cuda::add(sum, gpu, sum);
  sum.download(out);
  cv::add(out, frame, out);
}
