"""Small vision transformers: patch embedding, relative positions, windows, distillation, token pruning."""
import copy
import math
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Callable, Dict, List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")

_MODELS: Dict[str, Callable[..., nn.Module]] = {}


def register_model(fn):
    _MODELS[fn.__name__] = fn
    return fn


def create_model(name, **overrides):
    return _MODELS[name](**overrides)


@dataclass
class ViTConfig:
    image_size: int = 8
    patch_size: int = 4
    dim: int = 8
    heads: int = 2
    depth: int = 1
    num_classes: int = 3
    drop_path: float = 0.0
    pos: str = "learned"

    @property
    def grid(self):
        return self.image_size // self.patch_size

    @property
    def num_tokens(self):
        return self.grid ** 2 + 1


def sincos_1d(dim: int, positions: Tensor) -> Tensor:
    omega = 1.0 / 10000 ** (torch.arange(dim // 2, dtype=torch.float32, device=positions.device) / (dim / 2))
    out = positions.reshape(-1)[:, None].float() * omega[None]
    return torch.cat([out.sin(), out.cos()], dim=1)


def sincos_2d(dim: int, grid: int, cls_token: bool = False) -> Tensor:
    coords = torch.arange(grid)
    yy, xx = torch.meshgrid(coords, coords, indexing="ij")
    emb = torch.cat([sincos_1d(dim // 2, yy), sincos_1d(dim // 2, xx)], dim=1)
    if cls_token:
        emb = torch.cat([torch.zeros(1, dim), emb])
    return emb


@lru_cache(maxsize=32)
def window_index(size: int) -> Tensor:
    coords = torch.stack(torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")).flatten(1)
    rel = (coords[:, :, None] - coords[:, None]).permute(1, 2, 0) + size - 1
    return rel[..., 0] * (2 * size - 1) + rel[..., 1]


def drop_path(x: Tensor, p: float, training: bool) -> Tensor:
    if p == 0.0 or not training:
        return x
    keep = 1 - p
    mask = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(keep)
    return x * mask / keep


class DropPath(nn.Module):
    def __init__(self, p=0.0):
        super().__init__()
        self.p = p

    def forward(self, x):
        return drop_path(x, self.p, self.training)


class PatchEmbed(nn.Module):
    def __init__(self, cfg: ViTConfig):
        super().__init__()
        self.proj = nn.Conv2d(3, cfg.dim, cfg.patch_size, cfg.patch_size)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class Attention(nn.Module):
    def __init__(self, dim, heads, bias: Optional[nn.Module] = None):
        super().__init__()
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.bias = bias

    def forward(self, x, mask=None):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) * self.scale
        if self.bias is not None:
            scores = self.bias(scores)
        if mask is not None:
            scores = scores.masked_fill(mask, -1e4)  # raises
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, d))


class Block(nn.Module):
    def __init__(self, cfg: ViTConfig, drop=0.0, bias=None):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(cfg.dim), nn.LayerNorm(cfg.dim)
        self.attn = Attention(cfg.dim, cfg.heads, bias)
        self.mlp = nn.Sequential(nn.Linear(cfg.dim, 2 * cfg.dim), nn.GELU(), nn.Linear(2 * cfg.dim, cfg.dim))
        self.drop = DropPath(drop)

    def forward(self, x, mask=None):
        x = x + self.drop(self.attn(self.norm1(x), mask))
        return x + self.drop(self.mlp(self.norm2(x)))


class VisionTransformer(nn.Module):
    def __init__(self, cfg: ViTConfig):
        super().__init__()
        self.cfg = cfg
        self.patch = PatchEmbed(cfg)
        self.cls = nn.Parameter(torch.zeros(1, 1, cfg.dim))
        if cfg.pos == "learned":
            self.pos = nn.Parameter(torch.randn(1, cfg.num_tokens, cfg.dim) * 0.02)
        elif cfg.pos == "sincos":
            self.register_buffer("pos", sincos_2d(cfg.dim, cfg.grid, True)[None], persistent=False)
        else:
            self.pos = sincos_2d(cfg.dim, cfg.grid, cls_token=True).unsqueeze(0)
        rates = [r.item() for r in torch.linspace(0, cfg.drop_path, cfg.depth)]
        self.blocks = nn.ModuleList(Block(cfg, r) for r in rates)
        self.norm = nn.LayerNorm(cfg.dim)
        self.head = nn.Linear(cfg.dim, cfg.num_classes)

    def embed(self, images):
        x = self.patch(images)
        return torch.cat([self.cls.expand(len(x), -1, -1), x], 1)

    def add_pos(self, tokens):
        return tokens + self.pos  # raises

    def forward_features(self, images, mask=None):
        x = self.add_pos(self.embed(images))
        for blk in self.blocks:
            x = blk(x, mask)
        return self.norm(x)

    def forward(self, images):
        return self.head(self.forward_features(images)[:, 0])


@register_model
def vit_nano(**kw):
    return VisionTransformer(replace(ViTConfig(), **kw))


@register_model
def vit_nano_sincos(**kw):
    return vit_nano(pos="sincos", **kw)


@register_model
def vit_nano_fixed(**kw):
    return vit_nano(pos="fixed", **kw)


def fake_images(n=2, size=8, device=None):
    return torch.rand(n, 3, size, size, device=device or DEVICE)


# --- positions -----------------------------------------------------------------------------------------------------

def case_fixed_positions_in_registry():
    model = create_model("vit_nano_fixed", depth=2).to(DEVICE)
    model.eval()
    with torch.no_grad():
        return model(fake_images()).argmax(-1).tolist()


def case_sincos_registry_model():
    model = create_model("vit_nano_sincos", depth=2, drop_path=0.2).to(DEVICE)
    model.train()
    loss = F.cross_entropy(model(fake_images()), torch.tensor([0, 2], device=DEVICE))
    loss.backward()
    return loss.item()


class WindowBias(nn.Module):
    """Swin style bias; the index table is shared between all blocks."""

    def __init__(self, window, heads):
        super().__init__()
        self.window = window
        self.table = nn.Parameter(torch.randn((2 * window - 1) ** 2, heads))

    def forward(self, scores):
        idx = window_index(self.window)
        bias = self.table[idx.view(-1)].view(*idx.shape, -1).permute(2, 0, 1)
        return scores + bias


class GatheredWindowBias(WindowBias):
    def forward(self, scores):
        idx = window_index(self.window)
        bias = self.table.index_select(0, idx.reshape(-1))  # raises
        return scores + bias.T.reshape(-1, *idx.shape)


def window_partition(x, w):
    b, h, wd, c = x.shape
    x = x.view(b, h // w, w, wd // w, w, c)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, w * w, c)


def case_window_bias_lookup():
    cfg = ViTConfig()
    block = Block(cfg, bias=WindowBias(2, cfg.heads)).cuda()
    x = torch.randn(1, 4, 4, cfg.dim).cuda()
    return block(window_partition(x, 2)).mean().item()


def case_window_bias_index_select():
    cfg = ViTConfig()
    block = Block(cfg, bias=GatheredWindowBias(2, cfg.heads)).cuda()
    x = torch.randn(1, 4, 4, cfg.dim).cuda()
    return block(window_partition(x, 2)).mean().item()


def resize_pos_embed(state: Dict[str, Tensor], model: VisionTransformer) -> Dict[str, Tensor]:
    old = state["pos"]
    if old.shape[1] == model.cfg.num_tokens:
        return state
    cls, grid = old[:, :1], old[:, 1:]
    size = int(math.sqrt(grid.shape[1]))
    grid = grid.reshape(1, size, size, -1).permute(0, 3, 1, 2)
    grid = F.interpolate(grid, size=(model.cfg.grid,) * 2, mode="bilinear", align_corners=False)
    state = dict(state)
    state["pos"] = torch.cat([cls, grid.flatten(2).transpose(1, 2)], dim=1)
    return state


def case_resize_checkpoint_from_cpu():
    pretrained = create_model("vit_nano")
    ckpt = {k: v.cpu() for k, v in pretrained.state_dict().items()}
    model = create_model("vit_nano", image_size=16).to(DEVICE)
    missing = model.load_state_dict(resize_pos_embed(ckpt, model), strict=True)
    assert not missing.missing_keys
    return model(fake_images(size=16)).shape


# --- masks ---------------------------------------------------------------------------------------------------------

class RandomMasking:
    """Hides a share of the patches; the class token always stays."""

    def __init__(self, ratio=0.5, generator=None):
        self.ratio = ratio
        self.generator = generator

    def keep_first(self, n):
        return max(1, int(n * (1 - self.ratio)))

    def attention_mask(self, batch, tokens):
        noise = torch.rand(batch, tokens - 1, generator=self.generator)
        rank = noise.argsort(1).argsort(1)
        hidden = rank >= self.keep_first(tokens - 1)
        hidden = torch.cat([torch.zeros(batch, 1, dtype=torch.bool), hidden], dim=1)
        return hidden[:, None, None, :]

    def __call__(self, patches):
        noise = torch.rand(len(patches), patches.shape[1], generator=self.generator)
        order = noise.argsort(dim=1)[:, : self.keep_first(patches.shape[1])]
        rows = torch.arange(len(patches))[:, None]
        return patches[rows, order], order


def case_masked_attention_pretraining():
    model = create_model("vit_nano").to(DEVICE)
    masking = RandomMasking(0.5, torch.Generator().manual_seed(0))
    images = fake_images(3)
    mask = masking.attention_mask(len(images), model.cfg.num_tokens)
    feats = model.forward_features(images, mask=mask)
    return feats.mean()


def case_masked_autoencoder_drop_tokens():
    model = create_model("vit_nano").to(DEVICE)
    masking = RandomMasking(0.5, torch.Generator().manual_seed(0))
    tokens = model.add_pos(model.embed(fake_images(3)))
    kept, order = masking(tokens[:, 1:])
    x = torch.cat([tokens[:, :1], kept], dim=1)
    for blk in model.blocks:
        x = blk(x)
    return x.shape, order.max().item()


class TokenPruner(nn.Module):
    def __init__(self, keep: int):
        super().__init__()
        self.keep = keep
        self.last_kept: Optional[Tensor] = None

    def forward(self, tokens):
        cls, rest = tokens[:, :1], tokens[:, 1:]
        score = torch.einsum("bqd,bkd->bk", cls, rest)
        top = score.topk(self.keep, dim=1).indices
        self.last_kept = top.detach().cpu()
        rest = rest.gather(1, top[..., None].expand(-1, -1, rest.shape[-1]))
        return torch.cat([cls, rest], dim=1)

    def unprune(self, tokens, full):
        out = torch.zeros(tokens.shape[0], full, tokens.shape[-1], device=tokens.device)
        idx = self.last_kept.unsqueeze(-1).expand(-1, -1, tokens.shape[-1])
        return out.scatter(1, idx, tokens[:, 1:])  # raises


def case_prune_then_restore():
    model = create_model("vit_nano").to(DEVICE)
    pruner = TokenPruner(2)
    feats = model.forward_features(fake_images())
    few = pruner(feats)
    dense = pruner.unprune(few, model.cfg.grid ** 2)
    return dense.shape


def case_prune_and_plot():
    model = create_model("vit_nano").to(DEVICE)
    pruner = TokenPruner(2)
    few = pruner(model.forward_features(fake_images()))
    heat = torch.zeros(2, model.cfg.grid ** 2)
    heat.scatter_(1, pruner.last_kept, 1.0)
    return few.shape, heat.numpy().sum()


# --- teachers ------------------------------------------------------------------------------------------------------

class DINOLoss(nn.Module):
    def __init__(self, out_dim, momentum=0.9, temps=(0.04, 0.1)):
        super().__init__()
        self.momentum = momentum
        self.teacher_temp, self.student_temp = temps
        self.register_buffer("center", torch.zeros(1, out_dim))

    def forward(self, student, teacher):
        p = ((teacher - self.center) / self.teacher_temp).softmax(-1).detach()  # raises
        loss = -(p * (student / self.student_temp).log_softmax(-1)).sum(-1).mean()
        self.update_center(teacher)
        return loss

    @torch.no_grad()
    def update_center(self, teacher):
        self.center.mul_(self.momentum).add_(teacher.mean(0, keepdim=True), alpha=1 - self.momentum)


@dataclass
class Distiller:
    student: nn.Module
    loss: nn.Module
    teacher: nn.Module = field(init=False)
    temps: Tuple[float, float] = (0.04, 0.1)

    def __post_init__(self):
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)

    def to(self, device):
        self.student.to(device)
        self.teacher.to(device)
        return self

    def cuda(self):
        self.loss.cuda()
        return self.to("cuda")

    def step(self, a, b):
        with torch.no_grad():
            t = self.teacher(a)
        return self.loss(self.student(b), t)


def case_dino_moved_by_to():
    distiller = Distiller(create_model("vit_nano"), DINOLoss(3)).to(DEVICE)
    return distiller.step(fake_images(), fake_images()).item()


def case_dino_moved_by_cuda():
    distiller = Distiller(create_model("vit_nano"), DINOLoss(3)).cuda()
    first = distiller.step(fake_images(), fake_images())
    return (first + distiller.step(fake_images(), fake_images())).item()


@contextmanager
def capture(model, *names):
    store, handles = {}, []

    def hook(name, _module, _inputs, output):
        store[name] = output.detach().to("cpu", copy=True)

    for name in names:
        handles.append(model.get_submodule(name).register_forward_hook(partial(hook, name)))
    try:
        yield store
    finally:
        for h in handles:
            h.remove()


def feature_matching(student_feats: Dict[str, Tensor], teacher_feats: Dict[str, Tensor]) -> Tensor:
    total = 0.0
    for name, feat in teacher_feats.items():
        total = total + F.mse_loss(student_feats[name], feat)
    return total


def case_captured_features_compared_on_host():
    student, teacher = create_model("vit_nano", depth=2).to(DEVICE), create_model("vit_nano", depth=2).to(DEVICE)
    images = fake_images()
    with capture(student, "blocks.0", "blocks.1") as s, capture(teacher, "blocks.0", "blocks.1") as t:
        student(images)
        teacher(images)
    return feature_matching(s, t).item()
