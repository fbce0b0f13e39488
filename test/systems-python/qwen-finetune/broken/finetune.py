"""Fine-tunes a small language model with LoRA under DeepSpeed's ZeRO stage 2, one process for each GPU.

finetune.py [--small] [--steps N]
"""

import argparse
import json
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "common"))
import old_deepspeed  # noqa: F401  before DeepSpeed
import peft
import tiny
import transformers

DEEPSPEED = pathlib.Path(__file__).with_name("ds_config_zero2.json")
VOCABULARY = 128


def make_model(small):
    # The token embedding of a small model outweighs its layers. It is more than a card's share of the model, so "auto"
    # puts the whole model onto the last card.
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=4096 if small else VOCABULARY,
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=8,
            num_attention_heads=2,
            max_position_embeddings=64,
        )
    )


def load(small):
    with tiny.checkpoint(make_model(small)) as folder:
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, device_map="auto", low_cpu_mem_usage=True)
    model.config.use_cache = False
    lora = peft.LoraConfig(
        r=8, target_modules=["q_proj", "v_proj"], modules_to_save=["embed_tokens", "lm_head"], task_type="CAUSAL_LM"
    )
    return peft.get_peft_model(model, lora)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--steps", type=int, default=6)
    options = parser.parse_args()
    transformers.set_seed(0)
    tiny.train(
        lambda: load(options.small),
        tiny.Counting(VOCABULARY),
        deepspeed=json.loads(DEEPSPEED.read_text()),
        per_device_train_batch_size=4,
        max_steps=options.steps,
        learning_rate=1e-2,
    )


if __name__ == "__main__":
    main()
