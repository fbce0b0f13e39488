#include "doctor/ConfigFile.h"

#include "base/Text.h"
#include "doctor/DeepSpeedNames.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

namespace devicerun::doctor {
namespace {

using nlohmann::json;
constexpr const char *kTopic = "deepspeed";

/// One configuration on its way through the checks.
class DeepSpeedCheck {
public:
  DeepSpeedCheck(const ConfigFile &file, const json &config, const Machine &machine,
                 const VisibleDevices &visible, Diagnosis &diagnosis)
      : file(file), config(config), machine(machine), visible(visible), diagnosis(diagnosis) {}

  void run() {
    const int before = trouble();
    checkNames();
    if (const json *zero = object(config, "zero_optimization"))
      checkZero(*zero);
    else if (const json *other = member(config, "zero_optimization"))
      checkZeroKind(*other);
    checkNumberFormats();
    if (checkBatchNumbers())
      checkBatchSize();
    if (trouble() == before) {
      diagnosis.setPlace(file.path());
      diagnosis.ok(kTopic, "config", describe());
    }
  }

private:
  int trouble() const { return diagnosis.count(Verdict::Problem) + diagnosis.count(Verdict::Warning); }

  static const json *member(const json &parent, const char *name) {
    auto found = parent.find(name);
    return found == parent.end() || found->is_null() ? nullptr : &*found;
  }
  static const json *object(const json &parent, const char *name) {
    const json *found = member(parent, name);
    return found && found->is_object() ? found : nullptr;
  }
  /// DeepSpeed's models are pydantic's, which take some numbers and texts for truth values.
  static std::optional<bool> truthOf(const json &value) {
    if (value.is_boolean())
      return value.get<bool>();
    std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    for (const char *yes : {"true", "t", "yes", "y", "on", "1", "1.0"})
      if (text == yes)
        return true;
    for (const char *no : {"false", "f", "no", "n", "off", "0", "0.0"})
      if (text == no)
        return false;
    return std::nullopt;
  }
  static bool isTrue(const json &parent, const char *name) {
    const json *found = member(parent, name);
    return found && truthOf(*found).value_or(false);
  }
  /// A whole number; nothing for "auto", which Hugging Face's Trainer fills in.
  static std::optional<std::int64_t> number(const json &parent, const char *name) {
    const json *found = member(parent, name);
    return found && found->is_number_integer() ? std::optional(found->get<std::int64_t>()) : std::nullopt;
  }
  /// ZeroStageEnum of DeepSpeed's runtime/zero/config.py takes texts and decimals that are whole numbers,
  /// too.
  static std::optional<std::int64_t> stageOf(const json &zero) {
    const json *stage = member(zero, "stage");
    if (!stage)
      return 0;
    if (stage->is_string())
      return parseInteger(stage->get<std::string>());
    if (stage->is_number_float() && stage->get<double>() == std::floor(stage->get<double>()))
      return static_cast<std::int64_t>(stage->get<double>());
    return number(zero, "stage");
  }
  void at(const std::string &name, const std::string &after = "") {
    diagnosis.setPlace(file.placeOf(name, after));
  }

  std::string describe() const {
    const json *zero = object(config, "zero_optimization");
    if (!zero)
      return "without ZeRO";
    return fmt::format("ZeRO stage {}, optimizer offloaded to {}, parameters to {}",
                       stageOf(*zero).value_or(0), deviceOf(*zero, "offload_optimizer"),
                       deviceOf(*zero, "offload_param"));
  }

  static std::string deviceOf(const json &zero, const char *part) {
    const json *offload = object(zero, part);
    const json *device = offload ? member(*offload, "device") : nullptr;
    return device && device->is_string() ? device->get<std::string>() : offload ? "cpu" : "none";
  }

  void checkNames() {
    // runtime/config.py, _do_config_sanity_check() and dict_raise_error_on_duplicate_keys()
    if (!file.repeatedName().empty()) {
      at(file.repeatedName());
      diagnosis.problem(
          kTopic, "repeated-setting",
          fmt::format("'{}' is there twice in one object; DeepSpeed refuses the file", file.repeatedName()),
          "remove one of them");
    }
    for (const auto &[name, value] : config.items())
      if (std::optional<std::string> near = nearestSetting(name))
        warnUnknown(name, "", *near);
  }

  void warnUnknown(const std::string &name, const std::string &after, const std::string &near) {
    at(name, after);
    diagnosis.warn(kTopic, "unknown-setting", fmt::format("DeepSpeed has no setting '{}'", name),
                   fmt::format("did you mean {}?", near));
  }

  void checkZero(const json &zero) {
    const std::optional<std::int64_t> found = stageOf(zero);
    const json *written = member(zero, "stage");
    if (!found || *found < 0 || *found > 3) {
      at("stage", "zero_optimization");
      diagnosis.problem(kTopic, "zero-stage", fmt::format("there is no ZeRO stage {}", written->dump()),
                        "2 shards gradients and optimizer state, 3 parameters too");
    } else if (written && !written->is_number_integer()) {
      at("stage", "zero_optimization");
      diagnosis.warn(kTopic, "zero-stage-kind",
                     fmt::format("stage is {}, not a whole number", written->dump()),
                     fmt::format("write {}", *found));
    }
    const std::int64_t stage = found.value_or(0);
    checkSpelling(zero);
    for (const char *part : {"offload_optimizer", "offload_param"})
      checkOffload(zero, part);
    checkTogether(zero, stage);
    checkSaving(zero, stage);
    checkClipping(zero);
  }

  /// runtime/zero/config.py, read_zero_config_deprecated()
  void checkZeroKind(const json &zero) {
    at("zero_optimization");
    if (zero.is_boolean())
      diagnosis.warn(kTopic, "zero-kind",
                     fmt::format("zero_optimization is {}, a deprecated way to write stage {}", zero.dump(),
                                 zero.get<bool>() ? 1 : 0),
                     fmt::format(R"(write "zero_optimization": {{"stage": {}}})", zero.get<bool>() ? 1 : 0));
    else
      diagnosis.problem(kTopic, "zero-kind",
                        fmt::format("zero_optimization is {}, not an object", zero.dump()),
                        R"(write "zero_optimization": {"stage": 2}, or 3)");
  }

  /// DeepSpeed refuses names that it does not know in this object, unlike in the whole.
  void checkSpelling(const json &zero) {
    for (const auto &[name, value] : zero.items()) {
      if (isZeroSetting(name))
        continue;
      at(name, "zero_optimization");
      if (std::optional<std::string> near = nearestZeroSetting(name))
        diagnosis.problem(
            kTopic, "unknown-setting",
            fmt::format("zero_optimization has no setting '{}'; DeepSpeed refuses the file", name),
            fmt::format("did you mean {}?", *near));
      else
        diagnosis.warn(
            kTopic, "unknown-setting",
            fmt::format("'{}' is not known as a setting of zero_optimization, where DeepSpeed refuses "
                        "other names",
                        name),
            "remove it, unless a newer DeepSpeed has it");
    }
    if (member(zero, "cpu_offload")) {
      at("cpu_offload", "zero_optimization");
      diagnosis.warn(kTopic, "cpu-offload-deprecated", "cpu_offload is deprecated",
                     R"(write "offload_optimizer": {"device": "cpu", "pin_memory": true})");
    }
  }

  void checkOffload(const json &zero, const char *part) {
    const json *offload = member(zero, part);
    if (!offload)
      return;
    const json *named = offload->is_object() ? member(*offload, "device") : nullptr;
    if (!offload->is_object() || (named && !named->is_string())) {
      at(part);
      diagnosis.problem(
          kTopic, "offload-kind",
          named ? fmt::format("{}.device is {}, which is not a name", part, named->dump())
                : fmt::format("{} is {}, not an object; DeepSpeed refuses it", part, offload->dump()),
          fmt::format(R"(write "{}": {{"device": "cpu", "pin_memory": true}})", part));
      return;
    }
    const std::string device = deviceOf(zero, part);
    at("device", part);
    static const std::vector<std::string> devices = {"none", "cpu", "nvme"};
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) {
      diagnosis.problem(kTopic, "offload-device", fmt::format("{}.device is '{}'", part, device),
                        "DeepSpeed knows none, cpu and nvme");
      return;
    }
    if (device == "none")
      return;
    at(part);
    const json *pin = member(*offload, "pin_memory");
    if (!pin || truthOf(*pin)) {
      if (!isTrue(*offload, "pin_memory"))
        diagnosis.warn(kTopic, "offload-pin-memory",
                       fmt::format("{} is offloaded to {} without pin_memory: its copies do not overlap with "
                                   "computation",
                                   part, device),
                       "set \"pin_memory\": true, where the host has the memory to spare");
    } else {
      diagnosis.problem(kTopic, "offload-pin-memory", fmt::format("{}.pin_memory is not true or false", part),
                        "write true or false, without quotes");
    }
    if (device == "nvme")
      checkNvme(*offload, part);
  }

  void checkNvme(const json &offload, const char *part) {
    const json *path = member(offload, "nvme_path");
    std::error_code error;
    if (!path || !path->is_string())
      diagnosis.problem(kTopic, "nvme-path", fmt::format("{} is offloaded to nvme without nvme_path", part),
                        "set nvme_path to a folder on a local disk");
    else if (!std::filesystem::is_directory(path->get<std::string>(), error))
      diagnosis.problem(
          kTopic, "nvme-path",
          fmt::format("nvme_path of {} is {}, which is not a folder here", part, path->get<std::string>()),
          "make it, on every machine of the job");
  }

  void checkTogether(const json &zero, std::int64_t stage) {
    const std::string optimizer = deviceOf(zero, "offload_optimizer"),
                      parameters = deviceOf(zero, "offload_param");
    if (parameters != "none" && stage != 3) {
      at("offload_param");
      diagnosis.problem(kTopic, "offload-param-stage",
                        fmt::format("offload_param has no effect with stage {}: parameters are sharded with "
                                    "stage 3 only",
                                    stage),
                        "set stage to 3, or remove offload_param");
    } else if (optimizer != parameters && parameters != "none") {
      at("offload_param");
      diagnosis.warn(
          kTopic, "offload-devices-differ",
          fmt::format("parameters are offloaded to {}, the optimizer to {}: partitions of one model "
                      "are on different devices",
                      parameters, optimizer),
          "offload both to the same device, unless that is what you want");
    }
    if (optimizer != "none" && stage < 1) {
      at("offload_optimizer");
      diagnosis.problem(kTopic, "offload-optimizer-stage",
                        fmt::format("offload_optimizer has no effect with stage {}", stage),
                        "set stage to 2 or 3, or remove it");
    }
  }

  void checkSaving(const json &zero, std::int64_t stage) {
    constexpr const char *now = "stage3_gather_16bit_weights_on_model_save";
    constexpr const char *before = "stage3_gather_fp16_weights_on_model_save";
    if (member(zero, before)) {
      at(before);
      diagnosis.warn(kTopic, "gather-renamed", fmt::format("{} is deprecated", before),
                     fmt::format("it is called {} now", now));
    }
    if (stage != 3 || isTrue(zero, now) || isTrue(zero, before))
      return;
    at(member(zero, now) ? now : "stage");
    diagnosis.warn(
        kTopic, "gather-on-save",
        fmt::format("stage 3 without {}: a saved model has no weights, only the checkpoint's shards do", now),
        "set it to true, or make the weights from the checkpoint with zero_to_fp32.py");
  }

  /// The error needs all three: the version, partitions in host memory, and gradients that are clipped.
  void checkClipping(const json &zero) {
    const Package *package = machine.package("deepspeed");
    const json *clipping = member(config, "gradient_clipping");
    const bool clips = clipping && !(clipping->is_number() && clipping->get<double>() <= 0);
    if (!package || !hasClippingBug(*package) || !clips || deviceOf(zero, "offload_optimizer") == "none")
      return;
    at("gradient_clipping");
    diagnosis.problem(kTopic, "offload-clipping",
                      fmt::format("gradients are clipped, the optimizer is offloaded, and DeepSpeed {} is "
                                  "installed: the first step that clips fails with 'found at least two "
                                  "devices, cuda:0 and cpu'",
                                  package->version.text),
                      "pip install -U 'deepspeed>=0.14.5'");
  }

  void checkNumberFormats() {
    const json &root = config;
    const json *half = object(root, "fp16");
    const json *brain = object(root, member(root, "bf16") ? "bf16" : "bfloat16");
    const bool useHalf = half && isTrue(*half, "enabled"), useBrain = brain && isTrue(*brain, "enabled");
    if (useHalf && useBrain) {
      at("fp16");
      diagnosis.problem(kTopic, "two-formats", "fp16 and bf16 are both enabled; DeepSpeed refuses that",
                        "enable bf16 on GPUs from Ampere on, fp16 on older ones");
      return;
    }
    if (!useBrain)
      return;
    for (int index : visible.gpus)
      for (const Gpu &gpu : machine.driver.gpus)
        if (gpu.index == index && gpu.capabilityMajor > 0 && gpu.capabilityMajor < 8) {
          at(member(root, "bf16") ? "bf16" : "bfloat16");
          diagnosis.warn(
              kTopic, "bf16-old-gpu",
              fmt::format("bf16 is enabled, but {} has no arithmetic for it (compute capability {}.{})",
                          gpu.name, gpu.capabilityMajor, gpu.capabilityMinor),
              "use fp16 there");
          return;
        }
  }

  static constexpr const char *kBatch = "train_batch_size", *kMicro = "train_micro_batch_size_per_gpu",
                              *kSteps = "gradient_accumulation_steps";

  /// runtime/config.py, _batch_assertion(). "auto" is for Hugging Face's Trainer.
  bool checkBatchNumbers() {
    bool good = true;
    for (const char *name : {kBatch, kMicro, kSteps}) {
      const json *value = member(config, name);
      if (!value || *value == "auto" || (value->is_number_integer() && value->get<std::int64_t>() > 0))
        continue;
      at(name);
      diagnosis.problem(kTopic, "batch-number",
                        fmt::format("{} is {}; DeepSpeed needs a whole number above 0", name, value->dump()),
                        "set it to one, or leave it out where the others say it");
      good = false;
    }
    return good;
  }

  void checkBatchSize() {
    const auto all = number(config, kBatch), micro = number(config, kMicro), steps = number(config, kSteps);
    const std::optional<int> ranks = machine.number("WORLD_SIZE");
    if (!all)
      return;
    const std::int64_t product = micro.value_or(1) * steps.value_or(1) * std::max(1, ranks.value_or(1));
    const bool known = micro && steps && ranks;
    if (known ? *all == product : *all % product == 0)
      return;
    std::string factors;
    const auto add = [&](std::optional<std::int64_t> factor, const char *what) {
      if (factor)
        factors += fmt::format("{}{} {}", factors.empty() ? "" : " x ", *factor, what);
    };
    add(micro, "per GPU");
    add(steps, "accumulation steps");
    add(ranks, "ranks");
    at(kBatch);
    diagnosis.problem(kTopic, "batch-size",
                      known ? fmt::format("train_batch_size is {}, but {} is {}", *all, factors, product)
                            : fmt::format("train_batch_size is {}, which is not a multiple of {} ({})", *all,
                                          product, factors),
                      known ? "leave out one of the three; DeepSpeed computes it"
                            : "DeepSpeed needs train_batch_size = micro batch x accumulation steps x ranks");
  }

  const ConfigFile &file;
  const json &config; ///< the file's object, or the one within it
  const Machine &machine;
  const VisibleDevices &visible;
  Diagnosis &diagnosis;
};

} // namespace

bool isDeepSpeedConfig(const nlohmann::json &root) {
  if (!root.is_object())
    return false;
  for (const char *name : {"zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size"})
    if (root.contains(name))
      return true;
  return false;
}

void checkDeepSpeedConfig(const ConfigFile &file, const nlohmann::json &config, const Machine &machine,
                          const VisibleDevices &visible, Diagnosis &diagnosis) {
  DeepSpeedCheck(file, config, machine, visible, diagnosis).run();
}

} // namespace devicerun::doctor
