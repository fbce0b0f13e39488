"""The expressions a generated function is made of: creations on a device, moves, and operations by family.

Kinds: S a 0-dim float, V {4} floats, M {4, 4} floats, I {4} longs from 0 to 3, B {4, 4} bools.  An operation
is written with its operands in braces; the kinds make every one of them valid but for the devices.
"""

CREATIONS = {
    "S": ["torch::tensor(0.5, {o})", "torch::scalar_tensor(2.0, {o})", "torch::zeros({{}}, {o})",
          "torch::full({{}}, 0.5, {o})"],
    "V": ["torch::ones({{4}}, {o})", "torch::tensor({{0.1, 0.2, 0.3, 0.4}}, {o}.dtype(torch::kFloat))",
          "torch::linspace(0, 1, 4, {o})", "torch::full({{4}}, 0.5, {o})", "torch::hann_window(4, {o})"],
    "M": ["torch::ones({{4, 4}}, {o})", "torch::rand({{4, 4}}, {o})", "torch::eye(4, {o})",
          "torch::full({{4, 4}}, 0.25, {o})", "torch::arange(16.0, {o}).reshape({{4, 4}})",
          "torch::empty({{4, 4}}, {o}).fill_(1)", "torch::randn({{4, 4}}, {o})"],
    "I": ["torch::arange(4, {o}.dtype(torch::kLong))", "torch::randperm(4, {o}.dtype(torch::kLong))",
          "torch::randint(4, {{4}}, {o}.dtype(torch::kLong))",
          "torch::zeros({{4}}, {o}.dtype(torch::kLong))"],
    "B": ["torch::ones({{4, 4}}, {o}.dtype(torch::kBool))", "torch::eye(4, {o}).to(torch::kBool)"],
}

# From a tensor {x} of the same kind; the device is that of {x}, or of the options {o} where they are written.
LIKE_CREATIONS = {
    "S": ["torch::zeros_like({x})", "{x}.new_full({{}}, 0.5)", "torch::tensor(1.5, {x}.options())",
          "torch::ones_like({x}, {o})"],
    "V": ["torch::rand_like({x})", "{x}.new_ones({{4}})", "torch::ones({{4}}, {x}.options())",
          "torch::zeros_like({x}, {o})", "{x}.new_zeros({{4}}, {o})"],
    "M": ["torch::randn_like({x})", "{x}.new_ones({{4, 4}})", "torch::rand({{4, 4}}, {x}.options())",
          "torch::ones_like({x}, {o})", "{x}.new_full({{4, 4}}, 0.5, {o})", "torch::eye(4, {x}.device())",
          "torch::full_like({x}, 0.5)", "torch::ones({{4, 4}}, torch::kFloat).to({x})"],
    "I": ["torch::zeros_like({x})", "{x}.new_ones({{4}})", "torch::arange(4, {x}.options())"],
    "B": ["torch::ones_like({x})", "torch::zeros({{4, 4}}, {x}.options())"],
}

MOVES = ["{x}.to({d})", "{x}.to({d})", "{x}.to({d}, {x}.scalar_type())", "{x}.to({x}.options().device({d}))",
         "{x}.to({d}, {x}.scalar_type(), false, true)"]
MOVES_TO_TENSOR = ["{x}.to({y})", "{x}.to({y}.device())", "{x}.type_as({y})", "{x}.to({y}.options())"]

# (family, result, text).  The operands are named by kind; {M}, {M} are two different ones.
OPERATIONS = [
    ("binary", "M", "{M} + {M}"), ("binary", "M", "{M} * {S}"), ("binary", "M", "{S} - {M}"),
    ("binary", "M", "{M} / ({V} + 3)"), ("binary", "S", "{S} + {S}"), ("binary", "V", "{V} * {S}"),
    ("binary", "M", "torch::maximum({M}, {M})"), ("binary", "M", "{M}.sub({V})"),
    ("binary", "V", "{S} + {V}"), ("binary", "M", "torch::pow({M}, {S})"),
    ("binary", "S", "torch::mul({S}, {S})"), ("binary", "M", "2 * {M} - 1"),
    ("binary", "M", "torch::atan2({M}, {M})"), ("binary", "V", "torch::minimum({V}, {V})"),
    ("compare", "B", "{M} > {M}"), ("compare", "B", "{M} <= {S}"),
    ("compare", "B", "torch::logical_and({B}, {B})"), ("compare", "B", "{M}.lt({V})"),
    ("compare", "B", "{B} | {B}"), ("ternary", "M", "torch::addcmul({M}, {M}, {M})"),
    ("ternary", "M", "torch::lerp({M}, {M}, 0.5)"), ("ternary", "V", "torch::addcdiv({V}, {V}, {V} + 4)"),
    ("matmul", "M", "torch::matmul({M}, {M})"), ("matmul", "V", "{M}.mv({V})"),
    ("matmul", "M", "{M}.mm({M})"), ("matmul", "S", "torch::dot({V}, {V})"),
    ("matmul", "M", "torch::addmm({M}, {M}, {M})"),
    ("matmul", "M", 'torch::einsum("ij,jk->ik", {{{M}, {M}}})'),
    ("matmul", "M", "F::linear({M}, {M}, {V})"),
    ("matmul", "M", "torch::bmm({M}.unsqueeze(0), {M}.unsqueeze(0)).squeeze(0)"),
    ("matmul", "M", "torch::outer({V}, {V})"),
    ("join", "M", "torch::cat({{{M}, {M}}}).slice(0, 0, 4).clone()"),
    ("join", "M", "torch::stack({{{V}, {V}, {V}, {V}}})"),
    ("join", "V", "torch::stack({{{S}, {S}, {S}, {S}}})"),
    ("join", "V", "torch::cat({{{V}, {V}}}).narrow(0, 2, 4).clone()"),
    ("join", "M", "torch::vstack({{{V}, {V}, {V}, {V}}})"),
    ("join", "S", "torch::stack({{{S}, {S}}}).sum()"), ("index", "M", "{M}.index_select(0, {I})"),
    ("index", "M", "{M}.index({{{I}}})"), ("index", "V", "{M}.gather(1, {I}.unsqueeze(1)).squeeze(1)"),
    ("index", "V", "{V}.take({I})"), ("index", "S", "{M}.index({{{B}}}).sum()"),
    ("index", "S", "{M}.masked_select({B}).sum()"), ("index", "M", "torch::where({B}, {M}, {M})"),
    ("index", "M", "{M}.masked_fill({B}, 0.5)"), ("index", "M", "{M}.masked_fill({B}, {S})"),
    ("index", "M", "torch::embedding({M}, {I})"), ("index", "M", "{M}.index_add(0, {I}, {M})"),
    ("index", "M", "{M}.index_put({{{I}}}, {V})"),
    ("index", "M", "torch::one_hot({I}, 4).to(torch::kFloat)"),
    ("index", "V", "{V}.scatter_add(0, {I}, {V})"), ("reduce", "S", "{M}.sum()"),
    ("reduce", "S", "{M}.mean()"), ("reduce", "V", "{M}.sum(1)"), ("reduce", "S", "torch::norm({V})"),
    ("reduce", "I", "{M}.argmax(1)"), ("reduce", "V", "std::get<0>({M}.max(1))"),
    ("reduce", "I", "std::get<1>(torch::sort({V}))"), ("reduce", "S", "{V}.max()"),
    ("reduce", "V", "std::get<0>({V}.topk(4))"), ("view", "M", "{M}.t().contiguous()"),
    ("view", "V", "{M}[0].clone()"), ("view", "V", "{M}.diagonal().clone()"),
    ("view", "M", "{V}.expand({{4, 4}}).clone()"),
    ("view", "M", "{M}.view({{-1}}).reshape({{4, 4}}).clone()"), ("view", "V", "{M}.select(1, 2).clone()"),
    ("view", "S", "{V}[1].clone()"), ("view", "M", "{M}.chunk(2)[0].repeat({{2, 1}})"),
    ("view", "M", "{V}.unsqueeze(1).repeat({{1, 4}})"), ("view", "V", "{M}.unbind(0)[1].clone()"),
    ("unary", "M", "torch::relu({M})"), ("unary", "M", "{M}.softmax(1)"),
    ("unary", "M", "{M}.detach().clone()"), ("unary", "V", "torch::sigmoid({V})"),
    ("unary", "M", "{M}.clamp(0, 1)"), ("unary", "B", "{B}.logical_not()"),
    ("host", "M", "{M} * {S}.item<float>()"), ("host", "V", "{V} + {V}.size(0)"),
    ("loss", "S", "F::mse_loss({M}, {M})"), ("loss", "S", "F::cross_entropy({M}, {I})"),
    ("loss", "S", "torch::l1_loss({M}, {M})"), ("loss", "S", "torch::nll_loss({M}.log_softmax(1), {I})"),
    ("loss", "S", "F::smooth_l1_loss({M}, {M})"),
    ("loss", "S", "F::binary_cross_entropy_with_logits({M}, {M}.sigmoid())"),
    ("loss", "S", "torch::huber_loss({M}, {M})"),
    ("loss", "S", "F::cross_entropy({M}, {I}, F::CrossEntropyFuncOptions().weight({V}))"),
    ("loss", "S", "F::binary_cross_entropy({M}.sigmoid(), {M}.sigmoid())"),
    ("loss", "S", "F::kl_div({M}, {M}.sigmoid(), F::KLDivFuncOptions().reduction(torch::kBatchMean))"),
    ("loss", "V", "F::cosine_similarity({M}, {M}, F::CosineSimilarityFuncOptions().dim(1))"),
    ("norm", "M", "F::layer_norm({M}, F::LayerNormFuncOptions({{4}}).weight({V}).bias({V}))"),
]

# Statements that write their first operand, which must be a variable.
WRITES = [
    ("inplace", "{M}.add_({M})"), ("inplace", "{M} += {M}"), ("inplace", "{M}.mul_({S})"),
    ("inplace", "{S}.add_({S})"), ("inplace", "{S} += {M}.sum()"), ("inplace", "{V} *= {S}"),
    ("inplace", "{M}.addcmul_({M}, {M})"), ("inplace", "{V}.sub_({V})"), ("copy", "{M}.copy_({M})"),
    ("copy", "{M}[0] = {V}"), ("copy", "{M}.index_put_({{1}}, {V})"), ("copy", "{M}.fill_({S})"),
    ("copy", "{M}.select(0, 1).copy_({V})"), ("copy", "{V}.index({{torch::indexing::Slice(0, 4)}}) = {V}"),
    ("indexed", "{M}.index_put_({{{I}}}, {M}.clone())"), ("indexed", "{M}.masked_fill_({B}, 0.1)"),
    ("indexed", "{M}.index_add_(0, {I}, {M}.clone())"), ("indexed", "{V}.scatter_(0, {I}, {V}.clone())"),
    ("indexed", "{M}.index_copy_(0, {I}, {M}.clone())"), ("indexed", "{M}.masked_fill_({B}, {S})"),
    ("indexed", "{M}.select(0, 0).add_({V})"), ("out", "torch::add_out({M}, {M}.clone(), {M})"),
    ("out", "torch::mm_out({M}, {M}.clone(), {M}.clone())"), ("data", "{M}.set_data({M})"),
    ("inplace", "{M}.lerp_({M}, 0.5)"),
]

# (class, construction, input, result)
MODULES = [
    ("Linear", "torch::nn::Linear {n}(4, 4)", "M", "M"),
    ("Embedding", "torch::nn::Embedding {n}(4, 4)", "I", "M"),
    ("LayerNorm", "torch::nn::LayerNorm {n}(torch::nn::LayerNormOptions({{4}}))", "M", "M"),
    ("Sequential", "torch::nn::Sequential {n}(torch::nn::Linear(4, 4), torch::nn::ReLU())", "M", "M"),
    ("BatchNorm", "torch::nn::BatchNorm1d {n}(4)", "M", "M"), ("ReLU", "torch::nn::ReLU {n}", "M", "M"),
]
