#include "../cases.h"

#include <torch/torch.h>
torch::Device parse1(const std::string& s) {
  if (s == "gpu") return torch::kCUDA;
  if (s.rfind("cuda", 0) == 0) return torch::Device(s);
  return torch::kCPU;
}
torch::Device parse2(const std::string& s) { return s.find("cuda") != std::string::npos ? torch::Device(torch::kCUDA, 0) : torch::Device(torch::kCPU); }
torch::Device parse3(const std::string& s) {
  if (s.substr(0, 4) == "cuda") return torch::Device(torch::kCUDA, std::stoi(s.substr(5)));
  return torch::kCPU;
}
torch::Device parse4(const std::string& s) {
  if (s.empty() || s == "cpu") return torch::kCPU;
  return torch::Device(torch::kCUDA, 0);
}
torch::Device parse5(const char* s) { return std::string(s) == "cpu" ? torch::kCPU : torch::kCUDA; }
torch::Device parse6(bool cpu) { return (cpu || !torch::cuda::is_available()) ? torch::kCPU : torch::kCUDA; }
torch::Device parse7(const std::string& s) { if (s.compare(0, 4, "cuda") == 0) return torch::kCUDA; return torch::kCPU; }
template <class F> void use(F f, const char* s) { auto a = torch::ones({2}, f(s)), b = torch::ones({2}, torch::kCUDA); }
void p1_ok() { auto s = torch::ones({2}, parse1("cuda:0")) + torch::ones({2}, torch::kCUDA); }
void p2_ok() { auto s = torch::ones({2}, parse2("cuda:0")) + torch::ones({2}, torch::kCUDA); }
void p3_ok() { auto s = torch::ones({2}, parse3("cuda:0")) + torch::ones({2}, torch::kCUDA); }
void p4_ok() { auto s = torch::ones({2}, parse4("cuda:0")) + torch::ones({2}, torch::kCUDA); }
void p5_ok() { auto s = torch::ones({2}, parse5("cuda:0")) + torch::ones({2}, torch::kCUDA); }
void p6_ok() { auto s = torch::ones({2}, parse6(false)) + torch::ones({2}, torch::kCUDA); }
void p7_ok() { auto s = torch::ones({2}, parse7("cuda")) + torch::ones({2}, torch::kCUDA); }
void p1_bad() { auto s = torch::ones({2}, parse1("cpu")) + torch::ones({2}, torch::kCUDA); } // [[device-mixed-op]]

DT_MAIN(p1_ok, p2_ok, p3_ok, p4_ok, p5_ok, p6_ok, p7_ok, p1_bad)
