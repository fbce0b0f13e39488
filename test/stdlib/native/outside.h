// What the analyzer cannot look into: functions without a body. What they do depends on the world.
#pragma once

#include "at_label.h"
#include <algorithm>
#include <any>
#include <array>
#include <atomic>
#include <bitset>
#include <charconv>
#include <compare>
#include <deque>
#include <forward_list>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <sstream>
#include <stack>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

using torch::Tensor;

inline Tensor host() { return torch::ones({2, 2}); }
inline Tensor gpu() { return torch::ones({2, 2}, torch::Device(torch::kCUDA, 0)); }
inline Tensor second() { return torch::ones({2, 2}, torch::Device(torch::kCUDA, 1)); }

Tensor externalTensor();
int externalNumber(); // 0 to 5
bool externalFlag();
std::string externalName(); // "input", "weight", "bias" or something else
std::vector<Tensor> externalList();
std::vector<int> externalNumbers();
std::map<std::string, Tensor> externalMap();
std::optional<Tensor> externalOptional();
std::pair<Tensor, Tensor> externalPair();
void look(const std::vector<Tensor> &items);
void change(std::vector<Tensor> &items);
void changeList(std::list<Tensor> &items);
void changeMap(std::map<std::string, Tensor> &items);
void changeTensor(Tensor &item);
void changeOptional(std::optional<Tensor> &item);
