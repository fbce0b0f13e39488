"""Supervised fine-tuning with trl, on texts that count."""

import pathlib
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import datasets
import tiny
import tokenizers
import transformers
import trl

NUMBERS = [str(number) for number in range(100)]
PAD, END = 100, 101


def make_tokenizer():
    words = {word: i for i, word in enumerate([*NUMBERS, "<pad>", "<end>"])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<end>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<end>")


def make_model():
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=128,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            max_position_embeddings=64,
            pad_token_id=PAD,
            eos_token_id=END,
            bos_token_id=None,
        )
    )


def main():
    transformers.set_seed(0)
    texts = datasets.Dataset.from_dict({"text": [" ".join(NUMBERS[i : i + 10]) for i in range(64)]})
    with tempfile.TemporaryDirectory() as output:
        arguments = trl.SFTConfig(
            output_dir=output,
            max_steps=6,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            per_device_train_batch_size=4,
            learning_rate=1e-2,
            gradient_checkpointing=False,
            max_length=32,
        )
        trl.SFTTrainer(
            model=make_model(),
            args=arguments,
            train_dataset=texts,
            processing_class=make_tokenizer(),
            callbacks=[tiny.PrintLosses()],
        ).train()


if __name__ == "__main__":
    main()
