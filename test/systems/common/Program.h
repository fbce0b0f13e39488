// What every system's main() needs: command line sizes, the exit code for machines without a GPU.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace systems {

// Exit code by which test drivers tell "could not run here" from "failed".
constexpr int kSkipped = 77;

inline int skipWithoutCuda(const std::string &program) {
  std::cerr << program << ": no CUDA device is visible; this program needs at least one (two to be "
            << "of any use), skipping\n";
  return kSkipped;
}

// `--name value` pairs and bare `--flag`s.
class Arguments {
public:
  Arguments(int argc, char **argv) : words(argv + 1, argv + argc) {}

  bool flag(const std::string &name) const {
    for (const auto &word : words)
      if (word == name)
        return true;
    return false;
  }

  int64_t number(const std::string &name, int64_t fallback, int64_t minimum = 1) const {
    const auto *text = valueOf(name);
    const int64_t value = text ? std::stoll(*text) : fallback;
    if (value < minimum)
      throw std::invalid_argument(name + " must be at least " + std::to_string(minimum));
    return value;
  }

  double real(const std::string &name, double fallback) const {
    const auto *text = valueOf(name);
    return text ? std::stod(*text) : fallback;
  }

private:
  const std::string *valueOf(const std::string &name) const {
    for (size_t i = 0; i < words.size(); ++i) {
      if (words[i] != name)
        continue;
      if (i + 1 == words.size())
        throw std::invalid_argument(name + " needs a value");
      return &words[i + 1];
    }
    return nullptr;
  }

  std::vector<std::string> words;
};

// Sequences that count upwards from a random start in steps of three: a next-token task that a small
// model learns in a few steps. Made on the CPU, as a data loader would.
inline torch::Tensor countingTokens(int64_t batch, int64_t length, int64_t vocabulary) {
  auto start = torch::randint(vocabulary, {batch, 1}, torch::kLong);
  auto offsets = torch::arange(length, torch::kLong) * 3;
  return (start + offsets).remainder(vocabulary);
}

} // namespace systems
