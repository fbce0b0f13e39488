#include "analyzer/python/TensorUses.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/python/Scopes.h"

#include <algorithm>

namespace devicetidy::python {
namespace {

bool isOfTorch(const Node &callee) {
  Node base = callee;
  while (base.is("Attribute"))
    base = base["value"];
  return callee.is("Attribute") && base.is("Name") && isOneOf(base.text("id"), {"torch", "F"});
}

bool joins(const std::string &function) {
  return isOneOf(function,
                 {"cat", "concat", "stack", "hstack", "vstack", "dstack", "column_stack", "block_diag"});
}

// Two or more tensors come first.
bool takesOnlyTensors(const std::string &function) {
  return isOneOf(function, {"matmul",
                            "mm",
                            "bmm",
                            "mv",
                            "dot",
                            "outer",
                            "ger",
                            "cross",
                            "cdist",
                            "dist",
                            "baddbmm",
                            "addmm",
                            "logical_and",
                            "logical_or",
                            "masked_select",
                            "masked_scatter",
                            "cosine_similarity",
                            "grid_sample",
                            "linear",
                            "conv1d",
                            "conv2d",
                            "conv3d",
                            "cross_entropy",
                            "nll_loss",
                            "mse_loss",
                            "l1_loss",
                            "smooth_l1_loss",
                            "kl_div",
                            "binary_cross_entropy",
                            "binary_cross_entropy_with_logits",
                            "pairwise_distance",
                            "embedding",
                            "bilinear"});
}

// NumPy's arrays have these too: a parameter that is asked for them may be either, and is taken for a tensor.
bool isOfArrays(const std::string &name) {
  return isOneOf(name, {"shape", "size", "ndim", "squeeze", "transpose", "reshape", "flatten"});
}

} // namespace

bool isOfTensors(const std::string &name) {
  static const std::set<std::string> names = {
      "addmm",
      "argwhere",
      "baddbmm",
      "bitwise_and",
      "bmm",
      "chunk",
      "clamp",
      "clamp_max",
      "clamp_min",
      "contiguous",
      "detach",
      "dim",
      "element_size",
      "erf",
      "exp",
      "expand",
      "expand_as",
      "gather",
      "get_device",
      "grad_fn",
      "index_add",
      "index_fill",
      "index_select",
      "is_contiguous",
      "is_cuda",
      "is_floating_point",
      "is_sparse",
      "log1p",
      "log_softmax",
      "logical_and",
      "logical_not",
      "logical_or",
      "logsumexp",
      "long",
      "mT",
      "masked_fill",
      "masked_select",
      "matmul",
      "mm",
      "movedim",
      "narrow",
      "nelement",
      "new_empty",
      "new_full",
      "new_ones",
      "new_tensor",
      "new_zeros",
      "norm",
      "numel",
      "permute",
      "pin_memory",
      "relu",
      "repeat_interleave",
      "retain_grad",
      "rsqrt",
      "scatter",
      "scatter_add",
      "sigmoid",
      "softmax",
      "sqrt",
      "tanh",
      "topk",
      "tril",
      "triu",
      "type_as",
      "unbind",
      "unfold",
      "unsqueeze",
      "view",
      "view_as",
  };
  const bool isInPlace =
      name.size() > 1 && name.back() == '_' && name.front() != '_' && name != "requires_grad_";
  return isInPlace || names.count(name) != 0;
}

bool takesTensor(const Node &call) {
  static const std::set<std::string> others = {
      "arange",    "zeros",       "ones",       "full",     "linspace",  "randint",     "eye",
      "empty",     "rand",        "randn",      "randperm", "tensor",    "manual_seed", "device",
      "as_tensor", "from_numpy",  "load",       "save",     "is_tensor", "no_grad",     "normal",
      "logspace",  "FloatTensor", "LongTensor", "Tensor",   "einsum"};
  const std::string name = call["func"].text("attr");
  return call.is("Call") && isOfTorch(call["func"]) && !others.count(name) && !joins(name) &&
         !(name[0] >= 'A' && name[0] <= 'Z');
}

namespace {

// x[:, 0], x[..., None]: no list is asked for that.
bool hasSlices(const Node &index) {
  const std::vector<Node> parts = index.is("Tuple") ? index.list("elts") : std::vector<Node>{};
  return std::any_of(parts.begin(), parts.end(), [](const Node &part) {
    return part.is("Slice") || isOneOf(part.constant().first, {"ellipsis", "NoneType"});
  });
}

// What is one tensor with `node`: of a - b both are.
void addTensors(const Node &node, std::set<std::string> &tensors) {
  if (node.is("Name"))
    tensors.insert(node.text("id"));
  if (node.is("BinOp") && isOneOf(node["op"].kind(), {"Add", "Sub"}) && node["left"].is("Name") &&
      node["right"].is("Name"))
    for (const char *side : {"left", "right"})
      tensors.insert(node[side].text("id"));
}

} // namespace

TensorUses tensorUses(const Node &function) {
  TensorUses uses;
  std::set<std::string> asked; // what the function asks for its type may be anything
  forEachOfBlock(function, [&](const Node &node) {
    if (node.is("Attribute") && (isOfTensors(node.text("attr")) || isOfArrays(node.text("attr"))))
      addTensors(node["value"], uses.tensors);
    if (node.is("Subscript") && node["value"].is("Name") && hasSlices(node["slice"]))
      uses.tensors.insert(node["value"].text("id"));
    if (node.is("Subscript") && node["slice"].is("Compare") && node["slice"]["left"].is("Name")) // a mask
      uses.tensors.insert(node["slice"]["left"].text("id"));
    if (!node.is("Call"))
      return;
    if (const std::vector<Node> given = node.list("args");
        node["func"].text("id") == "isinstance" && !given.empty())
      asked.insert(given.front().text("id"));
    const bool takes = takesTensor(node);
    const bool isJoin = isOfTorch(node["func"]) && joins(node["func"].text("attr"));
    const bool takesAll = takes && takesOnlyTensors(node["func"].text("attr"));
    for (const Node &argument : takes || isJoin ? node.list("args") : std::vector<Node>()) {
      if (takes)
        addTensors(argument, uses.tensors);
      else if (argument.is("Name"))
        uses.lists.insert(argument.text("id"));
      if (!takesAll)
        return; // the others may be numbers
    }
  });
  for (const std::string &name : asked)
    uses.tensors.erase(name);
  return uses;
}

} // namespace devicetidy::python
