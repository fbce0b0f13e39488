"""A model that device_map="auto" spreads over cards of 1536 MiB each.

transformers takes 1.2 GiB of each card for granted."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import accelerate
import tiny
import torch
import transformers

MIB = 1 << 20


def make_model():
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=1024,
            hidden_size=128,
            intermediate_size=512,
            num_hidden_layers=8,
            num_attention_heads=2,
            max_position_embeddings=64,
        )
    )


def main():
    transformers.set_seed(0)
    cards = {card: room for card, room in accelerate.utils.get_max_memory().items() if card != "cpu"}
    assert sorted(cards) == [0, 1, 2, 3], cards
    assert all(1024 * MIB < room <= 1536 * MIB for room in cards.values()), cards
    with tiny.checkpoint(make_model()) as folder:
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, device_map="auto")
    assert len(set(model.hf_device_map.values())) > 2, model.hf_device_map
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    texts = torch.stack([each["input_ids"] for each in tiny.Counting(1024, count=4)]).to("cuda:0")
    for step in range(4):
        loss = model(texts, labels=texts).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
