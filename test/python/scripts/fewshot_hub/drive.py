#!/usr/bin/env python3
import argparse
import os
import sys
import tempfile

import torch

import hub
from hub.fewshot import adapt
from hub.report import accuracy, calibration_error

CLASSES = 3


def episode(shots, queries, seed):
    generator = torch.Generator().manual_seed(seed)
    centers = torch.randn(CLASSES, 6, generator=generator) * 3
    labels = torch.arange(CLASSES).repeat(shots + queries)
    x = centers[labels] + torch.randn(len(labels), 6, generator=generator)
    cut = CLASSES * shots
    return (x[:cut], labels[:cut]), (x[cut:], labels[cut:])


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=hub.available())
    parser.add_argument("--device", default=None)
    parser.add_argument("--head", choices=["prototype", "matching"], default="prototype")
    parser.add_argument("--trust", type=float, nargs=3)
    parser.add_argument("--center", action="store_true")
    parser.add_argument("--lookup", action="store_true")
    parser.add_argument("--half-cache", action="store_true")
    parser.add_argument("--reload", choices=["model", "head"])
    parser.add_argument("--adapt", action="store_true")
    parser.add_argument("--ece", action="store_true")
    args = parser.parse_args(argv)
    torch.manual_seed(0)

    with tempfile.TemporaryDirectory() as folder, hub.Session(
        args.model, args.device, half_cache=args.half_cache
    ) as session:
        if args.reload == "model":
            path = os.path.join(folder, "model.pt")
            torch.save({"weights": session.model.state_dict()}, path)
            session = hub.Session(args.model, args.device, path)
        if args.trust:
            session.model.set_prior(args.trust)
        (support, support_labels), (query, query_labels) = episode(3, 4, seed=5)
        if args.center:
            session.calibrate(support)
        embed = session.features
        if args.lookup:
            embed = lambda rows: session.lookup([hash(tuple(r.tolist())) for r in rows], rows)

        heads = {"prototype": hub.PrototypeHead, "matching": hub.MatchingHead}
        head = heads[args.head](CLASSES).fit(embed(support), support_labels)
        if args.reload == "head":
            path = os.path.join(folder, "head.pt")
            head.save(path)
            head = hub.PrototypeHead.load(path)
        scores = head.scores(embed(query))
        print("accuracy", accuracy(scores, query_labels))
        if args.adapt:
            print("adapted", accuracy(adapt(head, embed(query)).scores(embed(query)), query_labels))
        if args.ece:
            print("calibration", calibration_error(scores, query_labels))
        print(session.export(query.numpy()).shape)


if __name__ == "__main__":
    sys.exit(main())
