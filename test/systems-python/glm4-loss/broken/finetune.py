"""Fine-tunes a small model with LoRA; one process spreads its layers over all GPUs.

finetune.py [--steps N]
"""

import argparse
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "common"))
import peft
import tiny
import transformers
from modeling_small_glm import SmallGlmConfig, SmallGlmForCausalLM


def load():
    # Saved with its code, which from_pretrained() then runs from Hugging Face's cache.
    SmallGlmConfig.register_for_auto_class()
    SmallGlmForCausalLM.register_for_auto_class("AutoModelForCausalLM")
    with tiny.checkpoint(SmallGlmForCausalLM(SmallGlmConfig())) as folder:
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, device_map="auto", trust_remote_code=True)
    lora = peft.LoraConfig(r=8, target_modules=["query_key_value"], modules_to_save=["output_layer"])
    return peft.get_peft_model(model, lora)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=6)
    options = parser.parse_args()
    transformers.set_seed(0)
    tiny.train(load, tiny.Counting(128), per_device_train_batch_size=4, max_steps=options.steps, learning_rate=1e-2)


if __name__ == "__main__":
    main()
