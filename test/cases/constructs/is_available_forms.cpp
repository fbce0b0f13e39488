#include "../cases.h"

#include <torch/torch.h>
torch::Device pick() { return torch::cuda::is_available() ? torch::Device(torch::kCUDA, 0) : torch::Device(torch::kCPU); }
torch::Device pick2(bool cpu) { return (cpu || !torch::cuda::is_available()) ? torch::kCPU : torch::kCUDA; }
torch::Device pick3() { if (torch::cuda::device_count() > 0) return torch::Device(torch::kCUDA, 0); return torch::kCPU; }
torch::Device pick4() { static torch::Device d = torch::cuda::is_available() ? torch::Device(torch::kCUDA, 0) : torch::Device(torch::kCPU); return d; }
bool has() { return torch::cuda::is_available(); }
torch::Device pick5() { return has() ? torch::kCUDA : torch::kCPU; }
torch::Device pick6() { auto n = torch::cuda::device_count(); return n ? torch::Device(torch::kCUDA, 0) : torch::Device(torch::kCPU); }
torch::Device pick7() { torch::Device d = torch::kCPU; if (torch::cuda::is_available() && torch::cuda::device_count() > 0) d = torch::kCUDA; return d; }
void p1_ok() { auto s = torch::ones({4}, pick()) + torch::ones({4}).cuda(); }
void p2_ok() { auto s = torch::ones({4}, pick2(false)) + torch::ones({4}).cuda(); }
void p3_ok() { auto s = torch::ones({4}, pick3()) + torch::ones({4}).cuda(); }
void p4_ok() { auto s = torch::ones({4}, pick4()) + torch::ones({4}).cuda(); }
void p5_ok() { auto s = torch::ones({4}, pick5()) + torch::ones({4}).cuda(); }
void p6_ok() { auto s = torch::ones({4}, pick6()) + torch::ones({4}).cuda(); }
void p7_ok() { auto s = torch::ones({4}, pick7()) + torch::ones({4}).cuda(); }
void p8_ok() { auto s = torch::mse_loss(torch::ones({4}, pick()), torch::ones({4}).cuda()); }
void p9_ok() { auto s = torch::mse_loss(torch::ones({4}, pick()), torch::ones({4}, torch::kCUDA)); }
void p10_ok() { auto t = torch::ones({4}).to(pick()); if (torch::cuda::is_available()) t = t.cuda(); auto s = torch::ones({4}, pick()) + t; }
void p11_ok() { auto t = torch::ones({4}); if (torch::cuda::is_available()) t = t.to(torch::kCUDA); auto s = torch::ones({4}, pick()) * t; }
void p12_ok() { torch::nn::Linear l(4, 4); if (torch::cuda::is_available()) l->to(torch::kCUDA); auto y = l(torch::ones({1, 4}, pick())); }
void p13_ok() { auto d = pick(); auto x = torch::ones({4}, d); auto y = d.is_cuda() ? torch::ones({4}).cuda() : torch::ones({4}); auto s = x + y; }
void p14_ok() { auto x = torch::ones({4}, pick()); auto s = torch::nn::functional::cross_entropy(x.view({2, 2}), torch::zeros({2}, torch::kLong).cuda()); }

DT_MAIN(p1_ok, p2_ok, p3_ok, p4_ok, p5_ok, p6_ok, p7_ok, p8_ok, p9_ok, p10_ok, p11_ok, p12_ok, p13_ok,
        p14_ok)
