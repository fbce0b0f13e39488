"""Edits one fact in a small language model that is spread over the GPUs, as MEMIT does.

A vector is added to the output of one layer, where the subject of a sentence ends, and trained until the model continues
the sentence with the new fact. The layer's last matrix is then changed so that it yields that vector by itself.

edit.py [--layer N] [--steps N]
"""

import argparse
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "common"))
import tiny
import torch
import transformers

SUBJECT_END = 3  # the place of the subject's last token


def make_model():
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=128,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=32,
            num_attention_heads=2,
            max_position_embeddings=64,
            initializer_range=0.15,
        )
    )


def find_vector(model, layer, sentences, target, steps, device):
    """The output of the layer at the subject's end with which the model continues with `target`."""
    delta = torch.zeros(model.config.hidden_size, device=device, requires_grad=True)
    before = None

    def edit_output(module, arguments, output):
        nonlocal before
        if before is None:
            before = output[0, SUBJECT_END].detach().clone()
        for i in range(len(output)):
            output[i, SUBJECT_END] += delta.to(output.device)
        return output

    optimizer = torch.optim.Adam([delta], lr=0.5)
    hook = layer.register_forward_hook(edit_output)
    for step in range(steps):
        logits = model(sentences).logits[:, -1]
        loss = torch.nn.functional.cross_entropy(logits, target.expand(len(sentences)))
        print(f"step {step + 1}: loss {loss.item():.4f}", flush=True)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    hook.remove()
    return before + delta.detach().to(before.device)


def write_vector(model, layer, sentences, vector):
    """Changes the layer's last matrix so that the layer yields `vector` at the subject's end."""
    seen = {}
    hooks = [
        layer.mlp.down_proj.register_forward_hook(lambda module, inputs, output: seen.update(key=inputs[0][0])),
        layer.register_forward_hook(lambda module, inputs, output: seen.update(value=output[0])),
    ]
    with torch.no_grad():
        model(sentences)
        key, value = seen["key"][SUBJECT_END], seen["value"][SUBJECT_END]
        layer.mlp.down_proj.weight += torch.outer(vector - value, key) / key.dot(key)
    for hook in hooks:
        hook.remove()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--layer", type=int, default=8)
    parser.add_argument("--steps", type=int, default=8)
    options = parser.parse_args()
    transformers.set_seed(0)
    with tiny.checkpoint(make_model()) as folder:
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, device_map="auto")
    model.requires_grad_(False)
    device = torch.device("cuda:0")
    sentences = torch.randint(1, 128, (3, 6), device=device)
    sentences[:, : SUBJECT_END + 1] = sentences[0, : SUBJECT_END + 1]
    target = torch.tensor(42, device=device)
    layer = model.model.layers[options.layer]

    vector = find_vector(model, layer, sentences, target, options.steps, device)
    write_vector(model, layer, sentences, vector)
    chance = model(sentences).logits[0, -1].softmax(-1)[target]
    print(f"the model says so with a probability of {chance.item():.2f}")


if __name__ == "__main__":
    main()
