// The bodies of the functions without a body, in each of the worlds.
#include "outside.h"
#include "runner.h"

namespace {
Tensor on(int place) { return Tensor(place % 3); }

// One of six behaviours; sources with different salts do not go together in all worlds.
int choice(int salt) { return (runner::world + salt * (runner::world / 6)) % 6; }
} // namespace

Tensor externalTensor() { return on(choice(1)); }

int externalNumber() {
  const int numbers[] = {0, 3, 1, 5, 2, 4};
  return numbers[choice(0)];
}

bool externalFlag() { return runner::world >> (runner::flags++ % 3) & 1; }

std::string externalName() {
  const char *names[] = {"input", "weight", "bias", "other", "", "weight"};
  return names[choice(5)];
}

std::vector<Tensor> externalList() {
  switch (choice(1)) {
  case 0:
    return {};
  case 1:
    return {on(0)};
  case 2:
    return {on(1), on(1)};
  case 3:
    return {on(2), on(0), on(1), on(0), on(2)};
  case 4:
    return {on(0), on(0), on(0)};
  default:
    return {on(1), on(0), on(2), on(1)};
  }
}

std::vector<int> externalNumbers() {
  switch (choice(2)) {
  case 0:
    return {};
  case 1:
    return {1};
  case 2:
    return {2, 0};
  case 3:
    return {0, 1, 2, 1, 0};
  case 4:
    return {2, 2, 2};
  default:
    return {1, 0, 2, 0};
  }
}

std::map<std::string, Tensor> externalMap() {
  switch (choice(3)) {
  case 0:
    return {};
  case 1:
    return {{"weight", on(0)}};
  case 2:
    return {{"input", on(1)}, {"weight", on(1)}};
  case 3:
    return {{"other", on(2)}};
  case 4:
    return {{"bias", on(0)}, {"input", on(0)}, {"weight", on(0)}};
  default:
    return {{"bias", on(1)}, {"input", on(2)}, {"other", on(0)}, {"weight", on(1)}};
  }
}

std::optional<Tensor> externalOptional() {
  if (choice(4) % 2 == 0)
    return std::nullopt;
  return on(choice(4));
}

std::pair<Tensor, Tensor> externalPair() { return {on(choice(2)), on(choice(3))}; }

void look(const std::vector<Tensor> &) {}

void change(std::vector<Tensor> &items) {
  switch (choice(5)) {
  case 0:
    return;
  case 1:
    return items.clear();
  case 2:
    return items.push_back(on(1));
  case 3:
    return items.assign(4, on(2));
  case 4:
    return std::reverse(items.begin(), items.end());
  default:
    return items.assign(3, on(0));
  }
}

void changeList(std::list<Tensor> &items) {
  switch (choice(4)) {
  case 0:
    return;
  case 1:
    return items.clear();
  case 2:
    return items.push_back(on(1));
  case 3:
    return items.assign(4, on(2));
  case 4:
    return items.reverse();
  default:
    return items.assign(3, on(0));
  }
}

void changeMap(std::map<std::string, Tensor> &items) {
  switch (choice(4)) {
  case 0:
    return;
  case 1:
    return items.clear();
  case 2:
    items["weight"] = on(1);
    return;
  case 3:
    items["other"] = on(2);
    return;
  case 4:
    for (auto &[key, value] : items)
      value = on(0);
    return;
  default:
    for (auto &[key, value] : items)
      value = on(1);
    items["bias"] = on(2);
  }
}

void changeTensor(Tensor &item) {
  if (choice(2))
    item = on(choice(2));
}

void changeOptional(std::optional<Tensor> &item) {
  if (choice(3) == 1)
    item.reset();
  else if (choice(3))
    item = on(choice(3));
}
