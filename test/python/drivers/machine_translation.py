import numpy as np
import torch
from machine_translation import *

PAIRS = [([4, 5, 6, 7], [8, 9, 10]), ([5, 6], [9, 9, 9, 8])]
EVEN = [([4, 5, 6], [8, 9, 10]), ([5, 6, 7], [9, 8])]


def model(d="cuda", **k):
    return TranslationModel(TranslationConfig(**k)).to(d)


def batch(pairs=PAIRS, d="cuda", a=False):
    return Collater(a)(pairs).to(d)


def step(prior=None, guided=False, align=False, **k):
    m = model(**k)
    c = SmoothedCriterion(24, prior=prior).to("cuda")
    t = TrainStep(m, c, GuidedAlignment() if guided else None)
    t(Collater(align)(PAIRS))
    return t(Collater(align)(EVEN))


def generate(pairs=EVEN, forbidden=(), ngram=0, **k):
    b = batch(pairs)
    c = SearchConstraint(24, forbidden, ngram) if forbidden or ngram else None
    return BatchGenerator(model(), TokenChooser(**k), c, extra=4)(b.src, b.src_lengths)


def avg(what):
    a = CheckpointAverager(model())
    a.add()
    a.add()
    return getattr(a, what)()


def two_devices():
    m = model()
    m(batch())
    m.to("cuda:1")
    m(batch(d="cuda:1"))
    m.cpu()
    m(batch(d="cpu"))


CALLS = {
    "forward": lambda: model()(batch()),
    "two_devices": two_devices,
    "long": lambda: model(max_positions=2)(batch()),
    "relative": lambda: model(relative_bias=True)(batch()),
    "recurrent": lambda: model(encoder="recurrent")(batch()),
    "step": step,
    "step_prior": lambda: step(prior=np.ones(24)),
    "step_guided": lambda: step(guided=True, align=True),
    "step_align_unused": lambda: step(align=True),
    "tag": lambda: model().tag(batch().src, "de"),
    "tag_batch": lambda: model()(model().tag_batch(batch(), "fr")),
    "blank": lambda: Noiser().blank(batch().src),
    "shuffle": lambda: Noiser().shuffle(batch().src, batch().src_lengths),
    "generate": generate,
    "generate_shrink": lambda: generate(PAIRS),
    "generate_topk": lambda: generate(top_k=3),
    "generate_seed": lambda: generate(top_k=3, seed=1),
    "generate_forbidden": lambda: generate(forbidden=[5, 6]),
    "generate_ngram": lambda: generate(ngram=2),
    "score": lambda: SequenceScorer(model()).score(batch()),
    "rerank": lambda: SequenceScorer(model()).rerank(batch(), torch.zeros(2)),
    "calibrate": lambda: SequenceScorer(model()).calibrate(batch()),
    "avg_install": lambda: avg("install")(batch()),
    "avg_pull": lambda: avg("pull"),
}
