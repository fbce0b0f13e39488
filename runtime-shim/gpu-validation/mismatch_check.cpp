// Rank 1 calls another operation than the others, and the host then waits for the device: all ranks must end
// soon with an error that names both operations. Start it with RANK, WORLD_SIZE... as torchrun sets them.

#include <device_shim/Distributed.h>
#include <torch/torch.h>

#include <iostream>

int main() {
  try {
    auto ranks = device_shim::init_distributed();
    const auto numbers = torch::ones({12}, ranks->device());
    ranks->all_reduce(numbers);
    if (ranks->rank() == 1)
      ranks->broadcast(numbers);
    else
      ranks->all_reduce(numbers);
    std::cout << "no error, the sum is " << numbers.sum().item<float>() << std::endl;
    return 0;
  } catch (const std::exception &error) {
    std::cerr << "error: " << error.what() << std::endl;
    return 1;
  }
}
