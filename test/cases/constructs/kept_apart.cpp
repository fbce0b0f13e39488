#include "../cases.h"

// Clean code that is easy to misread: conditions that come again, elements that change places, entries that change.
#include <torch/torch.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

static torch::Tensor gpu() { return torch::zeros({2, 2}, torch::kCUDA); }
static torch::Tensor host() { return torch::zeros({2, 2}); }
static bool wide() { return torch::cuda::device_count() > 2; }
static bool deep() { return torch::cuda::device_count() > 3; }

static void twice(bool a, bool b) {
  auto x = host();
  if (a && b)
    x = x.cuda();
  if (a && b)
    torch::mm(x, gpu());
}
static void twiceNegated(bool a, bool b) {
  auto x = host();
  if (!(a || b))
    x = x.cuda();
  if (!(a || b))
    torch::mm(x, gpu());
}
void conditions_again_ok() {
  twice(wide(), deep());
  twiceNegated(wide(), deep());
}
static void onlyOne(bool a, bool b) {
  auto x = host();
  if (a && b)
    x = x.cuda();
  if (a)
    torch::mm(x, host()); // [[device-mixed-op]]
}
void conditions_differ_bad() { onlyOne(wide(), deep()); }

static void chosen(int n) {
  auto x = host();
  switch (n) {
  case 1: x = gpu(); break;
  default: break;
  }
  if (n == 1)
    torch::mm(x, gpu());
}
static void counted(int n) {
  if (!n)
    return;
  torch::mm(torch::zeros({2, 2}, torch::Device(torch::kCUDA, n)),
            torch::zeros({2, 2}, torch::Device(torch::kCUDA, 2)));
}
void numbers_ok() {
  chosen(wide() ? 1 : 0);
  counted(wide() ? 2 : 0);
}

void changed_places_ok() {
  std::vector<torch::Tensor> v{host(), gpu()};
  v.erase(v.begin());
  torch::mm(v[0], gpu());
  v.insert(v.begin(), gpu());
  torch::mm(v[0], gpu());
  v = {host(), gpu()};
  std::reverse(v.begin(), v.end());
  torch::mm(v[0], gpu());
  v.assign(3, gpu());
  torch::mm(v[0], gpu());
}
void appended_range_bad() {
  std::vector<torch::Tensor> all{gpu()}, more{gpu(), gpu()};
  all.insert(all.end(), more.begin(), more.end());
  torch::mm(all[2], host()); // [[device-mixed-op]]
}
void changed_entries_ok() {
  std::map<std::string, torch::Tensor> m{{"weight", host()}, {"bias", host()}};
  for (const std::string& name : {std::string("weight"), std::string("bias")})
    m[name] = m[name].to(torch::kCUDA);
  torch::mm(m["weight"], gpu());
  m["old"] = host();
  m.erase("old");
  if (m.count("old"))
    torch::mm(m["old"], gpu());
}

DT_MAIN(conditions_again_ok, conditions_differ_bad, numbers_ok, changed_places_ok, appended_range_bad,
        changed_entries_ok)
