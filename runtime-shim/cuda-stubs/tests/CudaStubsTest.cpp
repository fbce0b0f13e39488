// A program written for CUDA's headers, on virtual GPUs.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <ATen/cuda/CUDAUtils.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <torch/torch.h>

#include <gtest/gtest.h>

#include <thread>
#include <unordered_set>
#include <vector>

namespace {

const torch::Device gpu0(torch::kCUDA, 0), gpu1(torch::kCUDA, 1);

std::string firstLine(const std::function<void()> &run) {
  try {
    run();
  } catch (const c10::Error &error) {
    std::string text = error.what_without_backtrace();
    return text.substr(0, text.find('\n'));
  }
  return "";
}

TEST(CudaStubs, TheCurrentDeviceIsTheVirtualOne) {
  int device = -1;
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(torch::ones({1}, torch::kCUDA).device(), gpu1);
  EXPECT_EQ(c10::cuda::current_device(), 1);
  c10::cuda::set_device(3);
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  EXPECT_EQ(device, 3);
  EXPECT_EQ(c10::cuda::ExchangeDevice(0), 3);
  EXPECT_EQ(c10::cuda::MaybeExchangeDevice(-1), 0);
  std::thread([] {
    EXPECT_EQ(c10::cuda::current_device(), 0);
    c10::cuda::set_device(2);
  }).join();
  EXPECT_EQ(c10::cuda::current_device(), 0);
}

TEST(CudaStubs, GeneratorsAreMade) {
  auto first = at::cuda::detail::createCUDAGenerator(1), second = at::cuda::detail::createCUDAGenerator(1);
  EXPECT_EQ(first.device(), gpu1);
  EXPECT_EQ(at::check_generator<at::CUDAGeneratorImpl>(first)->device(), gpu1);
  auto numbers = [](const at::Generator &generator) {
    return torch::empty({4}, gpu1).uniform_(0, 1, generator);
  };
  EXPECT_TRUE(numbers(first).equal(numbers(second)));
  EXPECT_FALSE(numbers(first).equal(numbers(at::cuda::detail::getDefaultCUDAGenerator(1))));
}

TEST(CudaStubs, SmallerFunctionsAreThere) {
  c10::DeviceIndex index = -1;
  int number = -1;
  EXPECT_EQ(c10::cuda::SetDevice(1), cudaSuccess);
  EXPECT_EQ(c10::cuda::GetDevice(&index), cudaSuccess);
  EXPECT_EQ(c10::cuda::GetDevice(&number), cudaSuccess);
  EXPECT_EQ(index, 1);
  EXPECT_EQ(number, 1);
  EXPECT_TRUE(at::cuda::check_device({torch::ones({1}, gpu1), torch::ones({2}, torch::kCUDA)}));
  EXPECT_FALSE(at::cuda::check_device({torch::ones({1}, gpu1), torch::ones({1})}));
  EXPECT_EQ(c10::cuda::SetDevice(0), cudaSuccess);
  EXPECT_LE(std::get<1>(c10::cuda::CUDAStream::priority_range()), 0);
  c10::cuda::CUDACachingAllocator::setMemoryFraction(0.5, 0);
  EXPECT_NE(firstLine([] { c10::cuda::CUDACachingAllocator::setMemoryFraction(2, 0); }), "");
  at::cuda::CUDAGraph graph;
  EXPECT_EQ(firstLine([&] { graph.capture_begin(); }).rfind("virtual GPUs cannot capture", 0), 0u);
}

TEST(CudaStubs, DevicesAreCounted) {
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 4);
  EXPECT_EQ(c10::cuda::device_count(), 4);
  EXPECT_EQ(at::cuda::getNumGPUs(), 4);
  EXPECT_TRUE(at::cuda::is_available());
  EXPECT_EQ(cudaSetDevice(4), cudaErrorInvalidDevice);
  EXPECT_STREQ(cudaGetErrorString(cudaGetLastError()), "invalid device ordinal");
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(firstLine([] { c10::cuda::set_device(4); }), "CUDA error: invalid device ordinal");
  EXPECT_EQ(firstLine([] { C10_CUDA_CHECK(cudaSetDevice(-2)); }), "CUDA error: invalid device ordinal");
  EXPECT_EQ(at::cuda::getDeviceProperties(1)->totalGlobalMem, size_t{64} << 20);
  EXPECT_EQ(at::cuda::warp_size(), 32);
  EXPECT_TRUE(at::cuda::canDeviceAccessPeer(0, 1));
}

TEST(CudaStubs, GuardsRestore) {
  c10::cuda::set_device(0);
  {
    c10::cuda::CUDAGuard guard(1);
    EXPECT_EQ(torch::ones({1}, torch::kCUDA).device(), gpu1);
    EXPECT_EQ(guard.original_device(), gpu0);
    guard.set_index(2);
    EXPECT_EQ(c10::cuda::current_device(), 2);
    c10::cuda::OptionalCUDAGuard inner;
    EXPECT_FALSE(inner.current_device().has_value());
    inner.set_index(3);
    EXPECT_EQ(c10::cuda::current_device(), 3);
    inner.reset();
    EXPECT_EQ(c10::cuda::current_device(), 2);
    c10::cuda::OptionalCUDAGuard ofTensor(torch::device_of(torch::ones({1}, torch::Device("cuda:3"))));
    EXPECT_EQ(c10::cuda::current_device(), 3);
  }
  EXPECT_EQ(c10::cuda::current_device(), 0);
  EXPECT_NE(firstLine([] { c10::cuda::CUDAGuard guard{torch::Device(torch::kCPU)}; }), "");
}

TEST(CudaStubs, StreamsAreCurrentPerDevice) {
  auto stream = at::cuda::getStreamFromPool(/*isHighPriority=*/false, 1);
  EXPECT_EQ(stream.device_index(), 1);
  EXPECT_NE(stream, c10::cuda::getDefaultCUDAStream(1));
  {
    c10::cuda::CUDAStreamGuard guard(stream);
    EXPECT_EQ(at::cuda::getCurrentCUDAStream(), stream);
    EXPECT_EQ(c10::cuda::current_device(), 1);
    EXPECT_EQ(guard.original_device(), gpu0);
  }
  EXPECT_EQ(at::cuda::getCurrentCUDAStream(1), c10::cuda::getDefaultCUDAStream(1));
  EXPECT_EQ(c10::cuda::getDefaultCUDAStream(0).stream(), nullptr);
  {
    c10::cuda::CUDAMultiStreamGuard guard(c10::ArrayRef<c10::cuda::CUDAStream>(&stream, 1));
    EXPECT_EQ(at::cuda::getCurrentCUDAStream(1), stream);
  }
  EXPECT_EQ(at::cuda::getCurrentCUDAStream(1), c10::cuda::getDefaultCUDAStream(1));
  EXPECT_EQ(std::unordered_set<c10::cuda::CUDAStream>({stream, stream}).size(), 1u);
  EXPECT_EQ(c10::cuda::getStreamFromExternal(stream, 1), stream);
}

TEST(CudaStubs, EventsMeasureTime) {
  at::cuda::CUDAEvent start(cudaEventDefault), end(cudaEventDefault);
  start.record();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  end.record();
  end.block(at::cuda::getCurrentCUDAStream());
  EXPECT_GE(start.elapsed_time(end), 19.0f);
  EXPECT_NE(firstLine([&] { end.record(at::cuda::getStreamFromPool(false, 1)); }), "");
  at::cuda::CUDAEvent untimed, moved(std::move(start));
  untimed.record();
  EXPECT_TRUE(moved.isCreated());
  EXPECT_NE(firstLine([&] { moved.elapsed_time(untimed); }), "");
}

TEST(CudaStubs, MemoryIsCopiedInTheDirectionAskedFor) {
  std::vector<float> host = {1, 2, 3, 4}, back(4);
  float *device = nullptr;
  size_t bytes = host.size() * sizeof(float);
  ASSERT_EQ(cudaMalloc(&device, bytes), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(device, host.data(), bytes, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(back.data(), device, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(back, host);
  EXPECT_EQ(cudaMemcpy(back.data(), device, bytes, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(device, 0, bytes), cudaSuccess);
  auto tensor = torch::from_blob(device, {4}, torch::TensorOptions().device(gpu0));
  EXPECT_EQ(tensor.sum().item<float>(), 0);
  EXPECT_EQ(cudaMemcpy(tensor.data_ptr(), host.data(), bytes, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(tensor.sum().item<float>(), 10);
  cudaPointerAttributes attributes;
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, device), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  tensor = torch::Tensor();
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(cudaFree(back.data()), cudaErrorInvalidValue);
  void *pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 64), cudaSuccess);
  EXPECT_TRUE(torch::from_blob(pinned, {16}).is_pinned());
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST(CudaStubs, MemoryOfTheProgramIsPinned) {
  std::vector<float> host(64, 1);
  const size_t bytes = host.size() * sizeof(float);
  auto pinned = [&] { return torch::from_blob(host.data(), {64}).is_pinned(); };
  EXPECT_FALSE(pinned());
  ASSERT_EQ(cudaHostRegister(host.data(), bytes, cudaHostRegisterDefault), cudaSuccess);
  EXPECT_TRUE(pinned());
  cudaPointerAttributes attributes;
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, host.data() + 3), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(cudaHostRegister(host.data() + 8, 4, 0), cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(cudaHostUnregister(host.data() + 8), cudaErrorHostMemoryNotRegistered);
  EXPECT_EQ(cudaHostUnregister(host.data()), cudaSuccess);
  EXPECT_FALSE(pinned());
  EXPECT_EQ(cudaHostUnregister(host.data()), cudaErrorHostMemoryNotRegistered);
  EXPECT_EQ(cudaHostRegister(nullptr, 4, 0), cudaErrorInvalidValue);
}

TEST(CudaStubs, ManagedMemoryIsForBothSides) {
  float *shared = nullptr;
  ASSERT_EQ(cudaMallocManaged(&shared, 4 * sizeof(float)), cudaSuccess);
  for (int i = 0; i < 4; ++i)
    shared[i] = static_cast<float>(i);
  {
    auto tensor = torch::from_blob(shared, {4}, torch::TensorOptions().device(gpu0));
    EXPECT_EQ(tensor.sum().item<float>(), 6);
    tensor.add_(1);
  }
  EXPECT_EQ(shared[3], 4);
  float back[4] = {};
  for (cudaMemcpyKind kind : {cudaMemcpyHostToHost, cudaMemcpyDeviceToHost, cudaMemcpyDefault})
    EXPECT_EQ(cudaMemcpy(back, shared, sizeof(back), kind), cudaSuccess);
  EXPECT_EQ(back[1], 2);
  cudaPointerAttributes attributes;
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, shared), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeManaged);
  EXPECT_EQ(cudaFree(shared), cudaSuccess);
  EXPECT_EQ(cudaMallocManaged(&shared, 4, 7), cudaErrorInvalidValue);
}

TEST(CudaStubs, SmallQuestionsAndCalls) {
  char id[16] = "";
  EXPECT_EQ(cudaDeviceGetPCIBusId(id, sizeof(id), 3), cudaSuccess);
  EXPECT_STREQ(id, "0000:03:00.0");
  EXPECT_EQ(cudaDeviceGetPCIBusId(id, 5, 3), cudaErrorInvalidValue);
  EXPECT_EQ(cudaDeviceGetPCIBusId(id, sizeof(id), 4), cudaErrorInvalidDevice);
  int calls = 0;
  auto count = [](void *data) { ++*static_cast<int *>(data); };
  EXPECT_EQ(cudaLaunchHostFunc(nullptr, count, &calls), cudaSuccess);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(cudaLaunchHostFunc(nullptr, nullptr, &calls), cudaErrorInvalidValue);
}

TEST(CudaStubs, MemoryIsCounted) {
  size_t before = 0, after = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
  EXPECT_EQ(total, size_t{64} << 20);
  auto tensor = torch::empty({32 << 20}, torch::TensorOptions().device(gpu0).dtype(torch::kByte));
  ASSERT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
  EXPECT_EQ(before - after, size_t{32} << 20);
  void *tooMuch = nullptr;
  EXPECT_EQ(cudaMalloc(&tooMuch, size_t{40} << 20), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  namespace allocator = c10::cuda::CUDACachingAllocator;
  auto aggregate = static_cast<size_t>(allocator::StatType::AGGREGATE);
  EXPECT_GE(allocator::getDeviceStats(0).allocated_bytes[aggregate].current, 32 << 20);
  tensor = torch::Tensor();
  EXPECT_GE(allocator::getDeviceStats(0).allocated_bytes[aggregate].peak, 32 << 20);
  allocator::resetPeakStats(0);
  EXPECT_LT(allocator::getDeviceStats(0).allocated_bytes[aggregate].peak, 32 << 20);
  allocator::raw_delete(allocator::raw_alloc(512));
}

TEST(CudaStubs, GeneratorsAreTheDevices) {
  EXPECT_EQ(at::cuda::detail::getDefaultCUDAGenerator(1).device(), gpu1);
}

TEST(CudaStubs, Bfloat16RoundsLikeTorch) {
  for (float value : {0.0f, 1.0f, 3.14159f, -2.71828e20f, 1.00390625f})
    EXPECT_EQ(__bfloat162float(__float2bfloat16(value)), static_cast<float>(c10::BFloat16(value)));
}

TEST(CudaStubs, HalfIsThatOfTorch) {
  for (unsigned int bits = 0; bits < 0x10000; ++bits) {
    const __half half = __ushort_as_half(static_cast<unsigned short>(bits));
    const float expected = c10::Half(static_cast<unsigned short>(bits), c10::Half::from_bits());
    if (expected == expected) {
      ASSERT_EQ(__half2float(half), expected);
      ASSERT_EQ(__float2half(expected).bits, bits);
    }
  }
  for (float value : {1.0f / 3, 65519.0f, 65520.0f, -1e9f, 1e-7f, 2.9802322e-8f, 2.9802326e-8f, 6.1e-5f})
    EXPECT_EQ(__half_as_ushort(__float2half(value)), c10::Half(value).x);
}

TEST(CudaStubs, NumbersOf16BitsCalculate) {
  const __half2 pair = __halves2half2(__half(1), __half(2.5f));
  EXPECT_EQ(__high2float(__hfma2(pair, pair, pair)), 8.75f);
  EXPECT_EQ(static_cast<float>(pair.x + pair.y), 3.5f);
  EXPECT_TRUE(__hlt(pair.x, pair.y));
  EXPECT_TRUE(__hbge2(pair, pair));
  EXPECT_EQ(__half2int_rn(pair.y), 2);
  EXPECT_EQ(__bfloat162float(__hadd(__float2bfloat16(1), __float2bfloat16(2))), 3.0f);
}

TEST(WithoutLimit, FreeMemoryShrinksAllTheSame) {
  size_t before = 0, after = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
  void *memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, size_t{4} << 20), cudaSuccess);
  ASSERT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
  EXPECT_EQ(before - after, size_t{4} << 20);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST(WithoutDevices, EverythingSaysSo) {
  int count = -1;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(c10::cuda::device_count(), 0);
  EXPECT_FALSE(at::cuda::is_available());
  EXPECT_EQ(firstLine([] { c10::cuda::current_device(); }), "CUDA error: no CUDA-capable device is detected");
  EXPECT_EQ(cudaSetDevice(0), cudaErrorNoDevice);
}

} // namespace
