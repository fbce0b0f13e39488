// Model bodies of a project's own: C++ that says what a library without sources does.
// RUN: not %device-tidy --models=%S/Inputs/opencv.models --models=%S/Inputs/ring.cpp %s -- -std=c++17 -isystem %S/Inputs > %t.txt
// RUN: FileCheck %s < %t.txt
// RUN: %device-tidy --models=%S/Inputs/opencv.models %s -- -std=c++17 -isystem %S/Inputs | count 0
#include "gpu_mat.h"
#include "ring.h"

void latest(const char *name) {
  ring::Buffer<cv::cuda::GpuMat> frames(4);
  cv::cuda::GpuMat first(2, 2, 0), sum;
  frames.push(first);
  cv::cuda::setDevice(1);
  cv::cuda::GpuMat second(2, 2, 0);
  frames.push(second);
  cv::cuda::add(frames.latest(), second, sum);
  cv::cuda::setDevice(0);
  cv::cuda::GpuMat third(2, 2, 0);
  // CHECK: [[@LINE+1]]:3: warning: 'cv::cuda::add' gets 'frames.latest()' on cuda:1 and 'third' on cuda:0
  cv::cuda::add(frames.latest(), third, sum);
}

void each(const char *name) {
  ring::Buffer<cv::Mat> frames(4);
  frames.push(cv::imread(name));
  cv::cuda::GpuMat sum;
  const cv::cuda::GpuMat offset(2, 2, 0);
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'cv::cuda::add' gets 'offset' on cuda and 'frame' on cpu
  frames.each([&](const cv::Mat &frame) { cv::cuda::add(frame, offset, sum); });
}
// CHECK-NOT: warning:
