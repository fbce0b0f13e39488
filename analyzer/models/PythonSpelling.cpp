#include "analyzer/models/PythonSpelling.h"

#include <array>
#include <regex>

namespace devicetidy::models {

std::string inPython(std::string text) {
  static const std::array<std::pair<std::regex, const char *>, 11> spelled = {{
      {std::regex(R"(torch::Device\(torch::kCUDA, (\d+)\))"), "\"cuda:$1\""},
      {std::regex("torch::kCUDA"), "\"cuda\""},
      {std::regex("torch::kCPU"), "\"cpu\""},
      {std::regex("'auto (host|moved) = ([^';]*);?'"), "'$1 = $2'"},
      {std::regex(R"(auto moved = (([\w.]+)\.(?:to|cuda|cpu|type_as)\())"), "$2 = $1"},
      {std::regex("auto (host|moved) = "), "$1 = "},
      {std::regex(R"(register_buffer\(\"(\w+)\", \w+\))"), "self.register_buffer(\"$1\", ...)"},
      {std::regex(R"(\.device\(\))"), ".device"},
      {std::regex("at::Tensor::|torch::nn::Module::"), ""},
      {std::regex("Impl::"), "."},
      {std::regex("::"), "."},
  }};
  for (const auto &[pattern, words] : spelled)
    text = std::regex_replace(text, pattern, words);
  return text;
}

} // namespace devicetidy::models
