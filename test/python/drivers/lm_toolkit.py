from lm_toolkit import *

DEV = "cuda:0"
VOCAB = 20


def ids(batch=4, length=8, device=DEV):
    return torch.randint(3, VOCAB, (batch, length), device=device)


def lm(device=DEV):
    torch.manual_seed(0)
    return TransformerLM(VOCAB).to(device)


def batch():
    x = ids()
    labels = x.clone()
    labels[:, :2] = IGNORE_INDEX
    return {"input_ids": x, "labels": labels}


def mask():
    return (torch.arange(8, device=DEV)[None] < torch.tensor([8, 5, 3, 6], device=DEV)[:, None]).long()


def cu():
    return unpad(torch.randn(4, 8, 5, device=DEV), mask())[2]


def packed():
    segments = packed_segment_ids(cu())
    return block_diagonal_mask(segments)


def trained(model, criterion):
    model = model.to(DEV)
    opt = torch.optim.Adam(model.parameters())
    b = batch()
    out = model(b["input_ids"])
    loss = criterion(out[0] if isinstance(out, tuple) else out, b["labels"])
    loss.backward()
    opt.step()
    return loss.item()


def two_models():
    student, teacher = lm("cuda:0"), lm("cuda:1")
    x = ids()
    teacher(x.to("cuda:1"))
    return student(x)


def preference(step):
    trainer = PreferenceTrainer(lm(), lm())
    data = [batch(), batch()]
    trainer.precompute(data)
    if step:
        trainer.loss(0, data[0]).backward()


def meter(bits):
    made, model, b = PerplexityMeter(), lm(), batch()
    if bits:
        made.update_bits(model(b["input_ids"]), b["labels"])
    else:
        made.update(model(b["input_ids"]), b["labels"])
        return made.compute()


def masked(select):
    made = MaskedLMCollator(VOCAB)
    x = ids(8, 32)
    chosen = made.select(x) if select else torch.rand(8, 32, device=DEV) < 0.9
    return made.corrupt(x, chosen)


CALLS = {
    "causal": lambda: CausalCollator()([{"input_ids": ids()[0, :n]} for n in (3, 5, 8)]),
    "causal_host": lambda: CausalCollator(max_length=4)([{"input_ids": list(range(n))} for n in (3, 5, 8)]),
    "select": lambda: masked(True),
    "corrupt": lambda: masked(False),
    "documents": lambda: pack_documents([ids()[0], ids()[1, :5], ids()[2]], 4),
    "unpad": cu,
    "positions": lambda: packed_position_ids(cu()),
    "segments": packed,
    "train": lambda: trained(lm(), shifted_loss),
    "train_rnn": lambda: trained(RecurrentLM(VOCAB), shifted_loss),
    "encode": lambda: RecurrentLM(VOCAB).to(DEV).encode(ids(), mask()),
    "two_models": two_models,
    "weighted": lambda: TokenWeightedLoss([5] * VOCAB).to(DEV)(lm()(ids()), ids()),
    "precompute": lambda: preference(False),
    "dpo": lambda: preference(True),
    "perplexity": lambda: meter(False),
    "bits": lambda: meter(True),
    "strided": lambda: strided_perplexity(lm(), ids(1, 40)),
    "entropy": lambda: unigram_entropy(ids(), VOCAB),
    "generate": lambda: generate(lm(), ids(), banned=(1, 2)),
    "generate_stop": lambda: generate(lm(), ids(), stop=StopOnTokens([2, 5])),
    "beam": lambda: beam_search(lm(), ids()),
}
