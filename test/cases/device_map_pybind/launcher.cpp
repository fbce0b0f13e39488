// A C++ program that starts training with torchrun and loads a model in its own interpreter.
// These functions need the transformers package; they are analysed, not run.
#include <pybind11/embed.h>

#include <cstdlib>
#include <string>

namespace py = pybind11;
using namespace pybind11::literals;

int start_training(int gpus) {
  const std::string command = "torchrun --nproc_per_node=" + std::to_string(gpus) + " finetune.py";
  return std::system(command.c_str());
}

int start_training_with_map_bad() {
  return std::system("torchrun --nproc_per_node=8 finetune.py --device_map auto"); // [[device-map-distributed]]
}

int start_training_without_map_ok() { return std::system("torchrun --nproc_per_node=8 finetune.py --bf16"); }

void source_with_variable_bad() {
  py::exec(R"( # [[device-map-distributed]]
from transformers import AutoModelForCausalLM
placement = dict(device_map="balanced", torch_dtype="auto")
model = AutoModelForCausalLM.from_pretrained("qwen", **placement)
)");
}

void source_with_comment_ok() {
  py::exec(R"(
# device_map="auto" is for inference only
model = AutoModelForCausalLM.from_pretrained("qwen")
)");
}

void source_with_condition_ok() {
  py::exec("m = AutoModel.from_pretrained('qwen', device_map='auto' if world_size == 1 else None)");
}

py::dict defaults() {
  py::dict kwargs("device_map"_a = "auto");
  kwargs["torch_dtype"] = "auto";
  return kwargs;
}

py::object load_with_defaults_bad(const std::string &path) {
  auto model = py::module_::import("transformers").attr("AutoModelForCausalLM");
  return model.attr("from_pretrained")(path, **defaults()); // [[device-map-distributed]]
}

py::object load_with_removed_map_ok(const std::string &path) {
  auto kwargs = defaults();
  kwargs.attr("pop")("device_map", py::none());
  auto model = py::module_::import("transformers").attr("AutoModelForCausalLM");
  return model.attr("from_pretrained")(path, **kwargs);
}

py::object load_with_replaced_map_ok(const std::string &path) {
  auto kwargs = defaults();
  kwargs["device_map"] = py::none();
  auto model = py::module_::import("transformers").attr("AutoModelForCausalLM");
  return model.attr("from_pretrained")(path, **kwargs);
}

int main(int argc, char **argv) {
  py::scoped_interpreter interpreter;
  const std::string path = argc > 1 ? argv[1] : "Qwen/Qwen-14B-Chat";
  source_with_variable_bad();
  source_with_comment_ok();
  source_with_condition_ok();
  auto model = load_with_defaults_bad(path);
  model = load_with_removed_map_ok(path);
  model = load_with_replaced_map_ok(path);
  return start_training(8) + start_training_with_map_bad() + start_training_without_map_ok();
}
