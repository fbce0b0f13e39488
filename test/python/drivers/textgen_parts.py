import torch
import textgen_parts as t

D = "cuda:0"


def ids(rows=2, length=5):
    torch.manual_seed(0)
    return torch.randint(2, 32, (rows, length), device=D)


def scores(rows=2):
    return torch.randn(rows, 32, device=D)


def chain(name, **options):
    return t.DecodeSettings(processors=[(name, options)]).build()(ids(), scores())


def model(positions="rotary", **options):
    settings = t.DecodeSettings(**options)
    return t.SmallDecoder(settings, positions=positions).to(D)


def pool():
    made = t.HypothesisPool(t.DecodeSettings())
    for length in (3, 5, 4):
        made.add(ids(1, length)[0], torch.randn((), device=D))
    return made


def probs(*shape):
    return torch.rand(*shape, device=D).softmax(-1)


CALLS = {
    "repetition_plain": lambda: chain("repetition"),
    "repetition_exempt": lambda: chain("repetition", exempt=(0, 1)),
    "bias": lambda: chain("bias", bias={3: 1.0}),
    "forbid": lambda: chain("forbid", tokens=[0, 5]),
    "frequency": lambda: chain("frequency"),
    "trie": lambda: chain("trie", phrases=[(3, 4), (5, 6)]),
    "stop_sequences": lambda: t.StopSequences([(3, 4)])(ids()),
    "stop_tokens": lambda: t.StopTokens([(3, 4)])(ids()),
    "rotary_cached": lambda: t.Rotary(8).to(D)(torch.randn(2, 5, 8, device=D), torch.arange(5, device=D)),
    "rotary_exact": lambda: t.Rotary(8, cached=False).to(D)(torch.randn(2, 5, 8, device=D), torch.arange(5, device=D)),
    "cache_mask": lambda: t.KeyValueCache(window=3).padding_mask(torch.tensor([3, 4], device=D)),
    "forward_rotary": lambda: model()(ids()),
    "forward_alibi": lambda: model("alibi")(ids()),
    "sample": lambda: model(processors=[("forbid", {"tokens": [0]}), ("frequency", {})]).sample(ids(), t.StopTokens([(7, 8)])),
    "sample_seeded": lambda: model().sample(ids(), seed=3),
    "beam_expand": lambda: (lambda m: t.BeamSearch(m, m.settings).greedy_expand(ids()))(model()),
    "beam_run": lambda: (lambda m: t.BeamSearch(m, m.settings).run(ids()))(model()),
    "pool_summary": lambda: pool().summary(),
    "pool_rescored": lambda: pool().rescored(torch.randn(1, 32, device=D)),
    "speculative_strict": lambda: t.SpeculativeCheck().accepted(probs(2, 4, 32), probs(2, 4, 32), ids(2, 4)),
    "speculative_loose": lambda: t.SpeculativeCheck(strict=False).accepted(probs(2, 4, 32), probs(2, 4, 32), ids(2, 4)),
    "speculative_residual": lambda: t.SpeculativeCheck().residual(probs(2, 32), probs(2, 32)),
    "contrastive": lambda: t.contrastive_pick(scores(1)[0], torch.randn(3, 8, device=D), torch.randn(6, 8, device=D)),
    "group_penalty": lambda: t.group_penalty(scores(), [ids(1, 3)[0], ids(1, 2)[0]]),
}
