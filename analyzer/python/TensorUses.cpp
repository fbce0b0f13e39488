#include "analyzer/python/TensorUses.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Models.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <sstream>

namespace devicetidy::python {
namespace {

using Words = std::set<std::string>;

Words split(const char *text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

} // namespace

std::string libraryName(const Module &module, const Node &callee) {
  std::string attributes;
  Node base = callee;
  for (; base.is("Attribute"); base = base["value"])
    attributes.insert(0, "." + base.text("attr"));
  const Meaning *meaning = base.is("Name") ? Modules::find(module, base.text("id")) : nullptr;
  return meaning && meaning->kind == Meaning::Kind::Library ? meaning->name + attributes : std::string();
}

namespace {

// The function of torch on tensors that a call names; empty for anything else.
std::string functionOfTorch(const Module &module, const Node &callee) {
  const std::string name = libraryName(module, callee);
  const std::size_t dot = name.rfind('.');
  const bool isOnTensors =
      isOneOf(name.substr(0, dot), {"torch", "torch.nn.functional", "torch.linalg", "torch.special"});
  return dot != std::string::npos && isOnTensors ? name.substr(dot + 1) : std::string();
}

bool joins(const std::string &function) {
  return isOneOf(function,
                 {"cat", "concat", "stack", "hstack", "vstack", "dstack", "column_stack", "block_diag"});
}

// Two or more tensors come first.
bool takesOnlyTensors(const std::string &function) {
  static const Words names =
      split("addmm baddbmm bilinear binary_cross_entropy binary_cross_entropy_with_logits bmm cdist conv1d "
            "conv2d conv3d cosine_similarity cross cross_entropy dist dot embedding ger grid_sample kl_div "
            "l1_loss linear logical_and logical_or masked_scatter masked_select matmul mm mse_loss mv "
            "nll_loss outer pairwise_distance smooth_l1_loss");
  return names.count(function) != 0;
}

// NumPy's arrays have these too: a parameter that is asked for the first may be either, and is taken for a
// tensor; asked for the others only where no arrays are in sight.
bool isOfArrays(const std::string &name, bool hasArrays) {
  static const Words shapes = split("shape size ndim dtype squeeze transpose reshape flatten");
  static const Words numbers =
      split("T all any argmax argmin argsort clip cumprod cumsum dot item max mean min nonzero prod ravel "
            "repeat round std sum swapaxes tolist trace var");
  return shapes.count(name) != 0 || (!hasArrays && numbers.count(name) != 0);
}

bool hasArrays(const Module &module) {
  return std::any_of(module.meanings.begin(), module.meanings.end(), [](const auto &each) {
    return each.second.kind == Meaning::Kind::Library &&
           isOneOf(each.second.name.substr(0, each.second.name.find('.')),
                   {"numpy", "pandas", "scipy", "jax"});
  });
}

} // namespace

bool hasSlices(const Node &index) {
  const std::vector<Node> parts = index.is("Tuple") ? index.list("elts") : std::vector<Node>{};
  return std::any_of(parts.begin(), parts.end(), [](const Node &part) {
    return part.is("Slice") || isOneOf(part.constant().first, {"ellipsis", "NoneType"});
  });
}

bool isOfTensors(const std::string &name) {
  static const Words names = split(
      "abs acos acosh addbmm addcdiv addcmul addmm addmv addr amax amin aminmax argwhere asin asinh "
      "atan atan2 atanh baddbmm bernoulli bincount bitwise_and bmm broadcast_to ceil cholesky chunk clamp "
      "clamp_max clamp_min contiguous cos cosh count_nonzero cummax cummin data_ptr deg2rad det detach "
      "diag diag_embed digamma dim div element_size eq erf erfc erfinv exp expand expand_as expm1 flip "
      "floor floor_divide fmod frac gather ge ger get_device grad_fn gt heaviside histc hsplit hypot "
      "index_add index_copy index_fill index_select inverse is_contiguous is_cuda is_floating_point "
      "is_leaf is_sparse isfinite isinf isnan kthvalue le lerp lgamma log10 log1p log2 log_softmax "
      "logaddexp logcumsumexp logdet logical_and logical_not logical_or logical_xor logit logsumexp "
      "long lt mT masked_fill masked_select matmul maximum median minimum mm moveaxis movedim msort "
      "mul multinomial nan_to_num nanmean narrow ne neg nelement new_empty new_full new_ones "
      "new_tensor new_zeros norm numel numpy outer permute pin_memory pinverse pow qr quantile reciprocal "
      "relu remainder renorm repeat_interleave retain_grad roll rot90 rsqrt scatter scatter_add "
      "scatter_reduce sgn sigmoid sign signbit sin sinc sinh slogdet softmax sqrt square svd swapdims "
      "t take_along_dim tan tanh tensor_split tile topk tril triu true_divide trunc type_as unbind "
      "unfold unsqueeze vdot view view_as vsplit xlogy");
  const bool isInPlace =
      name.size() > 1 && name.back() == '_' && name.front() != '_' && name != "requires_grad_";
  return isInPlace || names.count(name) != 0;
}

bool isOfMany(const std::string &name) {
  static const Words names =
      split("add append apply backward bias buffers children clear clone close config copy cpu cuda data "
            "device double eval extend fit float forward format get grad half index int items keys load "
            "load_state_dict log_prob logits loss modules name named_parameters parameters pop predict read "
            "register_buffer reset sample save sort split state state_dict step to train training transform "
            "type update values weight write zero_grad");
  return isOfTensors(name) || isOfArrays(name, /*hasArrays=*/false) || names.count(name) != 0;
}

namespace {

// A call of a function of torch, or of einops, whose first argument is a tensor.
bool takesTensor(const Module &module, const Node &call) {
  if (isOneOf(libraryName(module, call["func"]), {"einops.rearrange", "einops.reduce", "einops.repeat"}))
    return true;
  static const Words others =
      split("arange zeros ones full linspace randint eye empty rand randn randperm tensor manual_seed device "
            "as_tensor from_numpy load save is_tensor no_grad normal logspace einsum get_default_dtype "
            "set_default_dtype set_default_device set_grad_enabled set_num_threads compile");
  const std::string name = functionOfTorch(module, call["func"]);
  return !name.empty() && !others.count(name) && !joins(name) && (name[0] < 'A' || name[0] > 'Z');
}

// Which arguments of a method of tensors are tensors, too: not those that may be numbers.
std::vector<std::size_t> tensorsGivenTo(std::string method) {
  static const std::map<std::string_view, Words> methods = {
      {"0",
       split("bmm copy_ cross dot expand_as ger kron lerp logical_and logical_or logical_xor "
             "masked_fill masked_scatter masked_select matmul mm mv outer reshape_as take take_along_dim "
             "type_as view_as")},
      {"01", split("addbmm addcdiv addcmul addmm addmv addr baddbmm")},
      {"1", split("gather index_fill index_select scatter scatter_add")},
      {"12", split("index_add index_copy")}};
  if (method != "copy_" && method.size() > 1 && method.back() == '_')
    method.pop_back();
  std::vector<std::size_t> places;
  for (const auto &[digits, names] : methods)
    for (const char digit : names.count(method) ? digits : std::string_view())
      places.push_back(static_cast<std::size_t>(digit - '0'));
  return places;
}

} // namespace

std::vector<std::size_t> placesOfTensors(const Module &module, const Node &call) {
  const std::string name = functionOfTorch(module, call["func"]);
  if (name.empty() && !libraryName(module, call["func"]).empty()) // numpy.dot is no method of tensors
    return {};
  std::vector<std::size_t> places = tensorsGivenTo(name.empty() ? call["func"].text("attr") : name);
  if (!name.empty()) // the tensor itself is given, too
    for (std::size_t &place : places)
      ++place;
  if (takesTensor(module, call))
    places.push_back(0);
  if (name == "einsum") // behind the equation
    for (std::size_t i = 1; i < call.list("args").size(); ++i)
      places.push_back(i);
  return places;
}

bool joinsTensors(const Module &module, const Node &call) {
  return joins(functionOfTorch(module, call["func"]));
}

namespace {

// What is one tensor with `node`: of a - b both are; of a name with what has none, the name.
void addTensors(const Node &node, std::set<std::string> &tensors) {
  if (node.is("Name"))
    tensors.insert(node.text("id"));
  if (!node.is("BinOp"))
    return;
  const auto isName = [&](const char *side) { return node[side].is("Name"); };
  const auto isPart = [&](const char *side) { return node[side].is("Attribute"); };
  const bool areNames = isName("left") && isName("right");
  const bool isNumber = node["left"].is("Constant") || node["right"].is("Constant");
  const bool isWithPart = (isName("left") && isPart("right")) || (isPart("left") && isName("right"));
  const std::string_view op = node["op"].kind();
  if (isNumber || (areNames && isOneOf(op, {"Add", "Sub"})) ||
      (isWithPart && isOneOf(op, {"Add", "Sub", "Div"})))
    for (const char *side : {"left", "right"})
      addTensors(node[side], tensors);
}

// The names that `node` is computed of: of (a - b) / c all three, of a[i] it is a.
void addOperands(const Node &node, std::set<std::string> &names) {
  if (node.is("Name"))
    names.insert(node.text("id"));
  if (node.is("Subscript"))
    addOperands(node["value"], names);
  for (const char *side : {"left", "right"})
    if (node.is("BinOp"))
      addOperands(node[side], names);
}

// Arguments that the methods of arrays have not.
bool namesDimension(const Node &call) {
  const std::vector<Node> named = call.list("keywords");
  return std::any_of(named.begin(), named.end(), [](const Node &each) {
    return isOneOf(each.text("arg"), {"dim", "keepdim", "descending", "non_blocking"});
  });
}

bool isMethodOfTensors(const Node &callee) {
  const std::string name = callee.text("attr");
  return callee.is("Attribute") && (isOfTensors(name) || isOfArrays(name, false) ||
                                    isOneOf(name, {"clone", "cpu", "cuda", "float", "to"}));
}

// x[i], x[:, 1]; not x[None]
bool isOfSeveral(const Node &index) {
  const std::vector<Node> parts = index.is("Tuple") ? index.list("elts") : std::vector<Node>{index};
  return std::any_of(parts.begin(), parts.end(), [](const Node &part) {
    return !isOneOf(part.constant().first, {"ellipsis", "NoneType", "str"}) && !part.is("Compare");
  });
}

// Methods that nobody calls for one number.
bool reduces(const std::string &method) {
  static const Words names = split(
      "T amax amin argmax argmin argsort chunk cumprod cumsum diag diagonal flip gather index_select "
      "kthvalue log_softmax logsumexp max mean median min mm mode mv permute prod quantile roll softmax "
      "sort split std sum t topk transpose tril triu unbind unique var");
  return names.count(method) != 0;
}

void addName(const Node &node, std::set<std::string> &names) {
  if (node.is("Name"))
    names.insert(node.text("id"));
}

// The names that `node` uses as what holds several numbers.
void addWide(const Node &node, std::set<std::string> &wide) {
  if (node.is("Attribute") && reduces(node.text("attr")))
    addName(node["value"], wide);
  if (node.is("Subscript") && isOfSeveral(node["slice"])) {
    addName(node["value"], wide);
    if (node["value"].is("Attribute") && node["value"].text("attr") == "shape")
      addName(node["value"]["value"], wide);
  }
  if (node.is("BinOp") && node["op"].is("MatMult"))
    for (const char *side : {"left", "right"})
      addName(node[side], wide);
  if (node.is("For") || node.is("comprehension"))
    addName(node["iter"], wide);
  if (!node.is("Call"))
    return;
  if (node["func"].text("id") == "len" && node.list("args").size() == 1)
    addName(node.list("args").front(), wide);
  if (node["func"].text("attr") == "size" && !node.list("args").empty())
    addName(node["func"]["value"], wide);
}

// What is a tensor where `value` is one: of a.argsort().flip(0) and of a[b.argmax()] it is a.
Node sourceOf(const Node &value) {
  if (value.is("Call") && isMethodOfTensors(value["func"]))
    return sourceOf(value["func"]["value"]);
  const bool isAtTensor =
      value.is("Subscript") && value["slice"].is("Call") && isMethodOfTensors(value["slice"]["func"]);
  return isAtTensor ? sourceOf(value["value"]) : value;
}

} // namespace

using Assigned = std::vector<std::pair<std::string, Node>>;

// a = x; a, b = x, y
void addAssigned(const Node &target, const Node &value, Assigned &assigned) {
  if (target.is("Name"))
    assigned.emplace_back(target.text("id"), value);
  const std::vector<Node> targets = target.list("elts"), values = value.list("elts");
  for (std::size_t i = 0;
       target.is("Tuple") && value.is("Tuple") && i < std::min(targets.size(), values.size()); ++i)
    addAssigned(targets[i], values[i], assigned);
}

// What tensors have beside methods. A method is called: in `data.norm = x` and `f(data.norm)` there is none.
bool isProperty(const std::string &name) {
  return isOneOf(name, {"T", "mT", "shape", "ndim", "dtype", "is_cuda", "is_leaf", "is_sparse", "grad_fn"});
}

// What `value` adds to `name`: of total + x and of total += x it is x.
Node addedTo(const std::string &name, const Node &value) {
  if (value.is("AugAssign"))
    return value["op"].is("Add") ? value["value"] : Node();
  if (value.is("BinOp") && value["op"].is("Add"))
    for (const auto &[side, other] : {std::pair("left", "right"), std::pair("right", "left")})
      if (value[side].text("id") == name)
        return value[other];
  return {};
}

// Does nothing but what is added make it a tensor? total = 0, total = total + x
bool startsAsNumber(const std::string &name, const Assigned &assigned) {
  return std::all_of(assigned.begin(), assigned.end(), [&](const auto &each) {
    return each.first != name || each.second.is("Constant") || addedTo(name, each.second).is("Name");
  });
}

// The names in what a call is given.
void addGiven(const Node &call, std::set<std::string> &names) {
  for (const Node &argument : call.list("args")) {
    addTensors(argument, names);
    forEachOfBlock(argument, [&](const Node &part) { addTensors(part, names); });
  }
}

// An attribute that no tensor has: model.config, batch.lengths.
bool isOfObjects(const std::string &name) {
  static const Words others =
      split("imag is_quantized itemsize layout names nbytes real requires_grad requires_grad_ "
            "storage stride untyped_storage");
  return !isOfMany(name) && !others.count(name) && !models::atenOp(name, {});
}

// The name that `assigned` makes a tensor or an array of, whatever it was: x = np.asarray(x)
std::string convertedBy(const Module &module, const Node &assigned) {
  const std::string name = assigned.list("targets").front().text("id");
  const Node call = assigned["value"];
  const bool converts =
      isOneOf(libraryName(module, call["func"]),
              {"numpy.array", "numpy.asarray", "torch.as_tensor", "torch.from_numpy", "torch.tensor"});
  const std::vector<Node> given = call.list("args");
  return converts && !given.empty() && given.front().text("id") == name ? name : std::string();
}

// The names whose elements `loop` (a statement or a comprehension) uses as tensors: of `for a in all`, all.
void addLists(const Module &module, const Node &loop, std::set<std::string> &lists) {
  const std::vector<Node> generators = loop.list("generators");
  const TensorUses within = tensorUses(module, loop);
  for (const Node &each : generators.empty() ? std::vector<Node>{loop} : generators)
    if (each["iter"].is("Name") && within.tensors.count(each["target"].text("id")))
      lists.insert(each["iter"].text("id"));
}

// The calls in `value` whose results are parts of it: of f(a) + c * g(b) both.
void addSummands(const Node &value, std::set<Location> &calls) {
  if (value.is("Call"))
    calls.insert(value.where());
  for (const char *side : {"left", "right"})
    if (value.is("BinOp"))
      addSummands(value[side], calls);
}

TensorUses tensorUses(const Module &module, const Node &function, bool isForNumPy) {
  TensorUses uses;
  std::set<std::string> differentiated;
  const bool arrays = hasArrays(module);
  std::set<std::string> moved, indices;  // what is both is no module
  std::set<std::string> tensorsOrArrays; // what is used as both are is an array where NumPy gets it
  std::set<std::string> ofObjects;       // models have types and devices, too
  std::set<std::string> ofAnyType;       // what the function asks for its type may be anything
  Assigned assigned;
  std::set<Location> called;
  forEachOfBlock(function, [&](const Node &node) {
    addWide(node, uses.wide);
    if (node.is("Call"))
      called.insert(node["func"].where());
    const bool isRead = node.is("Attribute") && (isProperty(node.text("attr")) || called.count(node.where()));
    if (isRead && isOfTensors(node.text("attr")))
      addTensors(sourceOf(node["value"]), uses.tensors);
    if (isRead && isOfArrays(node.text("attr"), arrays))
      addTensors(node["value"], tensorsOrArrays);
    if (node.is("Attribute") && isOfObjects(node.text("attr")))
      addName(node["value"], ofObjects);
    if (node.is("Attribute") && isOneOf(node.text("attr"), {"device", "is_cuda"}))
      uses.asked.insert(node["value"].text("id"));
    if (node.is("Subscript"))
      addTensors(sourceOf(node["slice"]), indices);
    if (node.is("Subscript") && node["value"].is("Name") && hasSlices(node["slice"]))
      tensorsOrArrays.insert(node["value"].text("id"));
    if (node.is("Subscript") && node["slice"].is("Compare") && node["slice"]["left"].is("Name")) // a mask
      (arrays ? tensorsOrArrays : uses.tensors).insert(node["slice"]["left"].text("id"));
    if (node.is("For") || !node.list("generators").empty())
      addLists(module, node, uses.lists);
    if (node.is("For") || node.is("comprehension"))
      addName(node["target"], uses.positions);
    if (node.is("BinOp") && node["op"].is("MatMult"))
      for (const char *side : {"left", "right"})
        if (node[side].is("Name"))
          tensorsOrArrays.insert(node[side].text("id"));
    if (node.is("Attribute") && node.text("attr") == "backward") {
      addName(sourceOf(node["value"]), differentiated);
      addSummands(node["value"], uses.losses);
    }
    if (node.is("Assign")) {
      addAssigned(node.list("targets").front(), node["value"], assigned);
      if (const std::string name = convertedBy(module, node); !name.empty() && !uses.tensors.count(name))
        ofAnyType.insert(name); // what is done with it from here on says nothing of what it was
    }
    if (node.is("AugAssign"))
      addAssigned(node["target"], node, assigned);
    if (!node.is("Call"))
      return;
    if (node["func"].is("Attribute") && namesDimension(node))
      addTensors(sourceOf(node["func"]["value"]), uses.tensors);
    const std::vector<Node> given = node.list("args");
    if ((node["func"].text("attr") == "to" && !given.empty() && given.front().text("attr") == "device") ||
        isOneOf(node["func"].text("attr"), {"cpu", "cuda"}))
      addTensors(node["func"]["value"], moved);
    for (std::size_t place : placesOfTensors(module, node))
      if (place < given.size())
        addTensors(sourceOf(given[place]), uses.tensors);
    const bool asksType =
        node["func"].text("id") == "isinstance" || libraryName(module, node["func"]) == "torch.is_tensor";
    if (asksType && !given.empty())
      ofAnyType.insert(given.front().text("id"));
    if (startsWith(libraryName(module, node["func"]), "numpy.")) {
      addGiven(node, uses.arrays);
      for (const Node &each : given)
        uses.forNumPy.insert(each.where());
    }
    if (takesOnlyTensors(functionOfTorch(module, node["func"])))
      for (const Node &argument : given)
        addTensors(argument, uses.tensors);
    if (joinsTensors(module, node) && !given.empty() && given.front().is("Name"))
      uses.lists.insert(given.front().text("id"));
    if (joinsTensors(module, node) && !given.empty())
      for (const Node &each : given.front().list("elts"))
        addTensors(sourceOf(each), uses.tensors);
  });
  for (const auto &[name, value] : assigned)
    if (differentiated.count(name))
      addSummands(value, uses.losses);
  std::set<std::string> once;
  for (const auto &[name, value] : assigned)
    if (!value.is("AugAssign") && !once.insert(name).second)
      uses.reassigned.insert(name);
  std::set_intersection(moved.begin(), moved.end(), indices.begin(), indices.end(),
                        std::inserter(uses.tensors, uses.tensors.end()));
  for (auto each = assigned.rbegin(); each != assigned.rend(); ++each)
    if (uses.arrays.count(each->first)) // what is computed for it is so of one
      addOperands(each->second, uses.arrays);
  for (const std::string &name : tensorsOrArrays)
    if (!ofObjects.count(name) && ((!isForNumPy && !uses.arrays.count(name)) || uses.asked.count(name)))
      uses.tensors.insert(name);
  for (auto each = assigned.rbegin(); each != assigned.rend(); ++each)
    if (const auto &[name, value] = *each; uses.tensors.count(name)) {
      if (const Node other = addedTo(name, value); other.is("Name") && startsAsNumber(name, assigned))
        addTensors(other, uses.tensors);
      else if (const Node source = sourceOf(value); !(source == value))
        addTensors(source, uses.tensors);
    }
  for (const std::string &name : ofAnyType)
    uses.tensors.erase(name);
  for (const std::string &name : uses.tensors)
    uses.arrays.erase(name);
  for (auto name = uses.positions.begin(); name != uses.positions.end();)
    name = indices.count(*name) && !uses.tensors.count(*name) ? std::next(name) : uses.positions.erase(name);
  return uses;
}

} // namespace devicetidy::python
