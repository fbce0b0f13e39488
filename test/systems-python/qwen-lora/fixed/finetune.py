"""Fine-tunes a small language model with LoRA, one process for each GPU; the settings are in finetune.json.

finetune.py [--steps N]
"""

import argparse
import json
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "common"))
import peft
import tiny
import transformers

SETTINGS = pathlib.Path(__file__).with_name("finetune.json")
VOCABULARY = 128


def make_model():
    return transformers.Qwen2ForCausalLM(
        transformers.Qwen2Config(
            vocab_size=VOCABULARY,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=4,
            num_attention_heads=2,
            num_key_value_heads=2,
            max_position_embeddings=64,
        )
    )


def load(settings):
    with tiny.checkpoint(make_model()) as folder:
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, **settings["model"])
    model.config.use_cache = False
    return peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **settings["lora"]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=6)
    options = parser.parse_args()
    settings = json.loads(SETTINGS.read_text())
    transformers.set_seed(0)
    tiny.train(lambda: load(settings), tiny.Counting(VOCABULARY), max_steps=options.steps, **settings["training"])


if __name__ == "__main__":
    main()
