#include "ann_index.h"

#include <c10/cuda/CUDAGuard.h>

#include <algorithm>

namespace ann {

ShardedIndex::ShardedIndex(std::vector<torch::Device> devices) {
  for (const auto& device : devices) {
    Shard shard;
    shard.device = device;
    shards_.push_back(std::move(shard));
  }
}

void ShardedIndex::build(const torch::Tensor& x, int64_t subspaces) {
  const auto parts = x.chunk(shards_.size());
  int64_t first = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    auto& shard = shards_[i];
    shard.codebook = torch::rand({subspaces, 256, x.size(1) / subspaces}, shard.device);
    shard.codes = torch::randint(256, {parts[i].size(0), subspaces},
                                 torch::dtype(torch::kUInt8).device(shard.device));
    shard.ids = torch::arange(first, first + parts[i].size(0), torch::kLong).to(shard.device);
    first += parts[i].size(0);
  }
}

torch::Tensor ShardedIndex::tables(const Shard& shard, const torch::Tensor& queries) const {
  const auto q = queries.view({shard.codebook.size(0), 1, -1});
  return (shard.codebook - q).pow(2).sum(-1);
}

torch::Tensor ShardedIndex::all_distances(const torch::Tensor& queries) const {
  std::vector<torch::Tensor> partial;
  for (const auto& shard : shards_)
    partial.push_back(pq_distances(tables(shard, queries.to(shard.device)), shard.codes));
  return torch::cat(partial); // [[device-mixed-op]]
}

Neighbours ShardedIndex::search(const torch::Tensor& queries, int64_t k) const {
  std::vector<torch::Tensor> distances, ids;
  for (const auto& shard : shards_) {
    const auto d = pq_distances(tables(shard, queries.to(shard.device)), shard.codes);
    const auto [best, where] = d.topk(std::min(k, d.size(0)), 0, /*largest=*/false);
    distances.push_back(best.to(queries.device()));
    ids.push_back(shard.ids.index_select(0, where).to(queries.device()));
  }
  const auto merged = torch::cat(distances);
  const auto [best, where] = merged.topk(k, 0, false);
  return {best, torch::cat(ids).index_select(0, where)};
}

Neighbours ShardedIndex::search_first(const torch::Tensor& queries, int64_t k) const {
  const auto& shard = shards_.front();
  const auto d = pq_distances(tables(shard, queries.to(shard.codes.device())), shard.codes);
  const auto [best, where] = d.topk(k, 0, false);
  return {best, shard.ids.index({where.cpu()})};
}

std::vector<torch::Tensor> ShardedIndex::raw_scan(const torch::Tensor& tables) const {
  std::vector<torch::Tensor> out;
  for (const auto& shard : shards_) {
    const c10::cuda::CUDAGuard guard(shard.device);
    out.push_back(pq_distances(tables.to(shard.device), shard.codes));
  }
  return out;
}

std::vector<int64_t> ShardedIndex::top_ids(const torch::Tensor& query, int64_t k) const {
  const auto found = search_first(query, k);
  std::vector<int64_t> out(k);
  std::copy_n(found.ids.data_ptr<int64_t>(), k, out.begin()); // [[device-host-access]]
  return out;
}

void ShardedIndex::remove(const std::vector<int64_t>& ids) {
  for (auto& shard : shards_) {
    const auto gone = torch::isin(shard.ids.cpu(), torch::tensor(ids, torch::kLong));
    const auto keep = gone.logical_not().nonzero().flatten();
    shard.ids = shard.ids.index({keep});
    shard.codes = shard.codes.index({keep});
  }
}

void ShardedIndex::save(const std::string& file) const {
  std::vector<torch::Tensor> books;
  for (const auto& shard : shards_)
    books.push_back(shard.codebook.cpu());
  torch::save(books, file);
}

void ShardedIndex::load_codebooks(const std::string& file) {
  std::vector<torch::Tensor> books;
  torch::load(books, file);
  for (size_t i = 0; i < shards_.size(); ++i)
    shards_[i].codebook = books.at(i).to(shards_[i].device);
}

} // namespace ann

#ifdef DT_RUN
#include "../../shim/driver.h"
using namespace ann;
static torch::Tensor bytes(std::vector<int64_t> s, int i = 1) { return torch::zeros(s, torch::dtype(torch::kByte).device(dtl::dev(i))); }
static ShardedIndex index(std::vector<torch::Device> d = {dtl::dev(1), dtl::dev(2)}) { ShardedIndex s(d); s.build(torch::rand({40, 8}), 2); return s; }
static void encode_bad() { pq_encode(dtl::gpu({8, 1}), dtl::gpu({8, 1})); }
static void products_bad() { inner_products(dtl::gpu({3, 4}), dtl::gpu({5, 4})); }
static void parallel_bad() { scan_parallel(dtl::gpu({2, 256}), {bytes({8, 2}), bytes({4, 2})}); }
static void timed_bad() { timed_scan(dtl::gpu({2, 256}), bytes({8, 2})); }
static void imbalance_bad() { CoarseQuantizer q(4, 8, dtl::dev(1)); q.imbalance(q.assign(torch::rand({20, 8}))); }
static void scan_bad() {
  InvertedLists l(2, 4, dtl::dev(1));
  l.add(torch::rand({3, 4}), torch::zeros({3}, torch::kLong));
  l.evict(0);
  l.scan(torch::rand({4}), 0);
}
static void cat_bad() { index().all_distances(torch::rand({8})); }
static void top_bad() { index().top_ids(torch::rand({8}), 3); }
static void train_ok() { CoarseQuantizer q(4, 8, dtl::dev(1)); q.train(torch::rand({20, 8}), 2); auto a = q.assign(torch::rand({20, 8})); q.residual(torch::rand({20, 8}), a.cpu()); }
static void train_cpu_ok() { CoarseQuantizer q(4, 8, torch::kCPU); q.train(torch::rand({20, 8}), 2); q.imbalance(q.assign(torch::rand({20, 8}))); }
static void lists_ok() {
  InvertedLists l(2, 4, dtl::dev(1));
  l.add(torch::rand({3, 4}), dtl::longs({3}, 2));
  l.evict(0);
  l.add(dtl::gpu({2, 4}), torch::zeros({2}, torch::kLong));
  l.norms(0);
  l.scan_resident(torch::rand({4}), 0);
  l.sizes();
}
static void hamming_ok() { hamming(torch::zeros({1}, torch::kLong), dtl::longs({6}, 2)); pq_distances(dtl::gpu({2, 256}), bytes({8, 2})); }
static void search_ok() { auto i = index(); i.search(dtl::gpu({8}), 5); i.search(torch::rand({8}), 5); i.search_first(torch::rand({8}), 2); }
static void raw_ok() { index().raw_scan(dtl::gpu({2, 256})); }
static void remove_ok() { auto i = index(); i.remove({1, 5, 33}); i.search(torch::rand({8}), 4); }
static void save_ok() { auto i = index(); i.save("books.pt"); i.load_codebooks("books.pt"); i.search(torch::rand({8}), 4); }
DT_MAIN(encode_bad, products_bad, parallel_bad, timed_bad, imbalance_bad, scan_bad, cat_bad, top_bad, train_ok,
        train_cpu_ok, lists_ok, hamming_ok, search_ok, raw_ok, remove_ok, save_ok)
#endif
