"""Fine-tunes a small vision-language model with DeepSpeed's ZeRO stage 3; optimizer and parameters are offloaded.

finetune.py [--clip NORM] [--steps N]
"""

import argparse
import json
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "common"))
import old_deepspeed  # noqa: F401  before DeepSpeed
import tiny
import torch
import transformers

DEEPSPEED = pathlib.Path(__file__).with_name("ds_config_zero3.json")
IMAGE, VOCABULARY = 100, 128


def make_model():
    vision = transformers.CLIPVisionConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, image_size=16, patch_size=8
    )
    language = transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2
    )
    return transformers.LlavaForConditionalGeneration(
        transformers.LlavaConfig(vision, language, image_token_index=IMAGE, pad_token_id=0)
    )


class Captions(tiny.Counting):
    """A picture with each text."""

    def __getitem__(self, index):
        text = self.texts[index]
        picture = torch.full((3, 16, 16), index / len(self))
        return {
            "input_ids": torch.cat([torch.tensor([IMAGE]), text]),
            "attention_mask": torch.ones(len(text) + 1, dtype=torch.long),
            "labels": torch.cat([torch.tensor([-100]), text]),
            "pixel_values": picture,
        }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--steps", type=int, default=6)
    options = parser.parse_args()
    transformers.set_seed(0)
    tiny.train(
        make_model,
        Captions(IMAGE),
        deepspeed=json.loads(DEEPSPEED.read_text()),
        per_device_train_batch_size=4,
        max_steps=options.steps,
        learning_rate=1e-2,
        max_grad_norm=options.clip,
    )


if __name__ == "__main__":
    main()
