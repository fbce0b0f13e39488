"""What the programs share: small random checkpoints, data that can be learnt, and losses on the terminal."""

import contextlib
import tempfile

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments


@contextlib.contextmanager
def checkpoint(model):
    """A folder with the model's random weights, for from_pretrained()."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        yield folder


class Counting(torch.utils.data.Dataset):
    """Texts that count upwards: each token is the one before it plus one."""

    def __init__(self, vocabulary, count=32, length=12):
        starts = torch.randint(1, vocabulary - length, (count, 1), generator=torch.Generator().manual_seed(1))
        self.texts = starts + torch.arange(length)

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return {"input_ids": self.texts[index], "labels": self.texts[index]}


class PrintLosses(TrainerCallback):
    """Prints the loss of each step."""

    def on_log(self, args, state, control, logs=None, **unused):
        if state.is_world_process_zero and "loss" in logs:
            print(f"step {state.global_step}: loss {logs['loss']:.4f}", flush=True)


def train(load, texts, **settings):
    """Trains with transformers' Trainer. `load` makes the model, behind the settings: they may decide how."""
    with tempfile.TemporaryDirectory() as output:
        arguments = TrainingArguments(
            output_dir=output,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            remove_unused_columns=False,
            **settings,
        )
        Trainer(load(), arguments, train_dataset=texts, callbacks=[PrintLosses()]).train()
