// Embedded Python inference in one process: device_map="auto" is what it is made for.
// These functions need the transformers package; they are analysed, not run.
#include <pybind11/embed.h>

#include <iostream>
#include <string>

namespace py = pybind11;
using namespace py::literals;

static py::object load_for_inference_ok(const std::string &path) {
  auto cls = py::module_::import("transformers").attr("AutoModelForCausalLM");
  return cls.attr("from_pretrained")(path, "device_map"_a = "auto");
}

static py::object load_spread_over_two_gpus_ok(const std::string &path) {
  py::dict placement("model.layers"_a = 0, "lm_head"_a = 1);
  auto cls = py::module_::import("transformers").attr("AutoModelForCausalLM");
  return cls.attr("from_pretrained")(path, py::arg("device_map") = placement);
}

static void source_text_ok() {
  py::exec("model = AutoModel.from_pretrained('glm-4', device_map='balanced_low_0')");
}

int main(int argc, char **argv) {
  py::scoped_interpreter interpreter;
  auto model = load_for_inference_ok(argc > 1 ? argv[1] : "THUDM/glm-4-9b-chat");
  if (argc > 2)
    model = load_spread_over_two_gpus_ok(argv[1]);
  source_text_ok();
  std::cout << py::str(model.attr("generate")("input_ids"_a = py::none())).cast<std::string>() << '\n';
}
