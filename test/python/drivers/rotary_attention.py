from rotary_attention import *


def x():
    return torch.rand(2, 6, 8, device="cuda")


def drive_rope():
    cos, sin = RotaryEmbedding(8).to("cuda")(x(), 6)
    apply_rotary(x(), x(), cos, sin)


def drive_dyn():
    cos, sin = DynamicRotaryEmbedding(8, max_len=4).to("cuda")(x(), 6)
    apply_rotary(x(), x(), cos, sin)


def drive_rope_long():
    cos, sin = RotaryEmbedding(8, max_len=4).to("cuda")(x(), 6)
    apply_rotary(x(), x(), cos, sin)


def drive_axial():
    AxialRotary(8).to("cuda")(2, 3)


def drive_t5():
    T5Bias(2).to("cuda")(4, 4)


def drive_t5_bucket():
    T5Bias(2).to("cuda").bucket(torch.arange(-5, 5, device="cuda"))


def drive_alibi():
    AlibiBias(2).to("cuda")(torch.rand(1, 2, 4, 4, device="cuda"))


def drive_learned():
    LearnedPositions(16, 8).to("cuda")(x(), 2)


def drive_attention():
    Attention(8, 2, window=2).to("cuda")(x(), lengths=torch.tensor([3, 6], device="cuda"))


def drive_causal():
    Attention(8, 2, causal=True).to("cuda")(x())


def drive_cache():
    Attention(8, 2).to("cuda")(x(), cache=KVCache(2, 2, 16, 4))
