#include "../cases.h"

#include <torch/torch.h>
#include <unordered_map>
#include <map>
using torch::indexing::Slice;
auto cu() { return torch::randn({4, 8}, torch::kCUDA); }
void slice1_bad() { auto o = cu() + torch::randn({4, 8}).index({Slice(0, 4)}); } // [[device-mixed-op]]
void ellipsis_bad() { auto o = cu() + torch::randn({4, 8}).index({"...", Slice(0, 8)}); } // [[device-mixed-op]]
void mask_bad() { auto t = torch::randn({4, 8}); auto o = cu().flatten() + t.index({t < 100}); } // [[device-mixed-op]]
void idx_bad() { auto t = torch::randn({4, 8}); auto o = cu() + t.index({torch::arange(4)}); } // [[device-mixed-op]]
void reshape_bad() { auto o = cu() + torch::randn({32}).reshape({4, 8}); } // [[device-mixed-op]]
void sizes_bad() { auto x = cu(); auto o = x + torch::zeros(x.sizes()); } // [[device-mixed-op]]
void sumk_bad() { auto o = cu() + torch::randn({4, 8}).mean(1, true); } // [[device-mixed-op]]
void sumd_bad() { auto o = cu() + torch::randn({4, 8, 3}).mean(-1); } // [[device-mixed-op]]
void expand_bad() { auto x = cu(); auto o = x + torch::randn({8}).expand_as(x); } // [[device-mixed-op]]
void view_bad() { auto x = cu(); auto o = x + torch::randn({32}).view(x.sizes()); } // [[device-mixed-op]]
void chunk_bad() { auto o = cu() + torch::randn({8, 8}).chunk(2, 0)[1]; } // [[device-mixed-op]]
void split_bad() { auto o = cu() + torch::randn({8, 8}).split(4)[0]; } // [[device-mixed-op]]
void max_bad() { auto o = cu() + std::get<0>(torch::randn({4, 8, 2}).max(2)); } // [[device-mixed-op]]
void emb_bad() { auto o = cu() + torch::embedding(torch::randn({9, 8}), torch::zeros({4}, torch::kLong)); } // [[device-mixed-op]]
void onehot_bad() { auto o = cu() + torch::one_hot(torch::zeros({4}, torch::kLong), 8); } // [[device-mixed-op]]
void vec_bad() { std::vector<float> v(8, 1.f); auto o = cu() + torch::tensor(v); } // [[device-mixed-op]]
void perm_bad() { auto o = cu() + torch::randn({8, 4}).permute({1, 0}); } // [[device-mixed-op]]
void selrow_bad() { auto o = cu() + torch::randn({3, 4, 8})[1]; } // [[device-mixed-op]]
void from_blob_bad() { static float b[8]; auto o = cu() + torch::from_blob(b, {8}); } // [[device-mixed-op]]
void stk_bad() { std::vector<torch::Tensor> v; for (int i = 0; i < 4; ++i) v.push_back(torch::randn({8})); auto o = cu() + torch::stack(v); } // [[device-mixed-op]]
void where_bad() { auto t = torch::randn({4, 8}); auto o = cu() + torch::where(t > 0, t, torch::zeros_like(t)); } // [[device-mixed-op]]
void mmr_bad() { auto o = cu() + torch::matmul(torch::randn({4, 3}), torch::randn({3, 8})); } // [[device-mixed-op]]
void lin_bad() { torch::nn::Linear l(3, 8); auto o = cu() + l(torch::randn({4, 3})); } // [[device-mixed-op]]
void outer_bad() { auto o = cu() + torch::outer(torch::ones(4), torch::ones(8)); } // [[device-mixed-op]]
void einsum_bad() { auto o = cu() + torch::einsum("ij,jk->ik", {torch::randn({4, 3}), torch::randn({3, 8})}); } // [[device-mixed-op]]
void detach_bad() { std::map<std::string, torch::Tensor> m; m["a"] = torch::randn({4, 8}); auto o = cu() + m.find("a")->second; } // [[device-mixed-op]]
void emplacef_bad() { std::map<std::string, torch::Tensor> m; auto o = cu() + m.emplace("a", torch::randn({4, 8})).first->second; } // [[device-mixed-op]]
void emplace2_bad() { std::map<std::string, torch::Tensor> m; auto it = m.emplace("a", torch::randn({4, 8})).first; auto o = cu() + it->second; } // [[device-mixed-op]]
void insert_bad() { std::map<std::string, torch::Tensor> m; m.insert({"a", torch::randn({4, 8})}); auto o = cu() + m["a"]; } // [[device-mixed-op]]
void insertoa_bad() { std::map<std::string, torch::Tensor> m; m.insert_or_assign("a", torch::randn({4, 8})); auto o = cu() + m.at("a"); } // [[device-mixed-op]]
void trye_bad() { std::map<std::string, torch::Tensor> m; auto [it, f] = m.try_emplace("a", torch::randn({4, 8})); auto o = cu() + it->second; } // [[device-mixed-op]]
void itassign_bad() { std::map<std::string, torch::Tensor> m; m["a"] = torch::randn({4, 8}).cuda(); auto it = m.find("a"); if (it != m.end()) it->second = it->second.cpu(); auto o = cu() + m["a"]; } // [[device-mixed-op]]
void initl_bad() { std::map<std::string, torch::Tensor> m{{"a", torch::randn({4, 8})}}; for (auto& kv : m) auto o = cu() + kv.second; } // [[device-mixed-op]]

DT_MAIN(slice1_bad, ellipsis_bad, mask_bad, idx_bad, reshape_bad, sizes_bad, sumk_bad, expand_bad, view_bad,
        chunk_bad, split_bad, emb_bad, onehot_bad, vec_bad, perm_bad, selrow_bad, from_blob_bad, stk_bad,
        where_bad, mmr_bad, lin_bad, outer_bad, einsum_bad, detach_bad, emplacef_bad, emplace2_bad,
        insert_bad, insertoa_bad, trye_bad, itassign_bad, initl_bad, max_bad, sumd_bad)
