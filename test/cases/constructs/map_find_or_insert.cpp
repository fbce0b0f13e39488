#include "../cases.h"

#include <torch/torch.h>
#include <map>
#include <string>
struct M {
  std::map<std::string, torch::Tensor> hits;
  void add(const std::string& c, const torch::Tensor& s) {
    auto it = hits.find(c);
    if (it == hits.end())
      hits[c] = s;
    else
      it->second = torch::cat({it->second, s.cpu()}); // [[device-mixed-op]]
  }
  void add_ok(const std::string& c, const torch::Tensor& s) {
    auto it = hits.find(c);
    if (it == hits.end())
      hits[c] = s.cpu();
    else
      it->second = torch::cat({it->second, s.cpu()});
  }
};
struct M2 {
  std::map<std::string, torch::Tensor> hits;
  void add(const std::string& c, const torch::Tensor& s) {
    auto it = hits.find(c);
    if (it == hits.end()) it = hits.emplace(c, s.cpu()).first;
    it->second = it->second + s; // [[device-mixed-op]]
  }
};
struct M3 {
  std::map<std::string, torch::Tensor> hits;
  void add(const std::string& c, const torch::Tensor& s) {
    if (!hits.count(c)) hits[c] = s.cpu();
    else hits[c] = hits[c] + s; // [[device-mixed-op]]
  }
};
void loop_bad() { M m; for (int i = 0; i < 2; ++i) m.add("cat", torch::rand({3}, torch::kCUDA)); }
void loop_ok() { M m; for (int i = 0; i < 2; ++i) m.add_ok("cat", torch::rand({3}, torch::kCUDA)); }
void emplace_bad() { M2 m; m.add("cat", torch::rand({3}, torch::kCUDA)); }
void count_bad() { M3 m; for (int i = 0; i < 2; ++i) m.add("cat", torch::rand({3}, torch::kCUDA)); }

DT_MAIN(loop_bad, loop_ok, emplace_bad, count_bad)
