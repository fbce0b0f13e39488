"""CTC on tones: python train.py --encoder rnn --norm global --augment --decoder beam"""
import argparse

import torch
import torch.nn.functional as F

from data import make_loader, statistics
from decoder import DECODERS
from features import Frontend, GlobalNorm, SpecAugment, UtteranceNorm
from model import ENCODERS, Recognizer
from text import BLANK, collapse, decode, distance


def to_device(batch, device, keep=("texts",)):
    return {k: v if k in keep else v.to(device) for k, v in batch.items()}


def ctc(log_probs, frames, batch):
    return F.ctc_loss(
        log_probs.transpose(0, 1), batch["labels"], frames, batch["label_lengths"], blank=BLANK, zero_infinity=True
    )


def evaluate(model, loader, device, decoder):
    model.eval()
    errors = letters = 0
    with torch.no_grad():
        for batch in loader:
            batch = to_device(batch, device)
            log_probs, frames = model(batch["waves"], batch["wave_lengths"])
            for guess, text in zip(decoder(log_probs, frames), batch["texts"]):
                errors += distance(guess, text)
                letters += len(text)
    return errors / letters


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--encoder", choices=sorted(ENCODERS), default="conv")
    parser.add_argument("--norm", choices=["utterance", "global", "none"], default="utterance")
    parser.add_argument("--augment", action="store_true")
    parser.add_argument("--decoder", choices=sorted(DECODERS), default="greedy")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--stream", action="store_true", help="only transcribe one utterance, chunk by chunk")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    loader = make_loader()
    frontend = Frontend()
    if args.norm == "global":
        frontend.add(GlobalNorm(*statistics(frontend, loader.dataset)))
    elif args.norm == "utterance":
        frontend.add(UtteranceNorm())
    if args.augment:
        frontend.add(SpecAugment())
    model = Recognizer(frontend, args.encoder).to(device)
    if args.stream:
        wave, _, text = loader.dataset[0]
        guess = model.transcribe_stream(wave.to(device))[0].argmax(-1)
        print(text, "->", decode(collapse(guess.tolist())))
        return

    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(args.epochs):
        model.train()
        for batch in loader:
            batch = to_device(batch, device)
            log_probs, frames = model(batch["waves"], batch["wave_lengths"])
            loss = ctc(log_probs, frames, batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"{epoch} loss {loss.item():.3f}")
    print("error rate", evaluate(model, loader, device, DECODERS[args.decoder]))


if __name__ == "__main__":
    main()
