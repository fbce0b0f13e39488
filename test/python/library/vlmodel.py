"""A vision-language model: encoders, fusion, heads by registry, losses, generation."""
import math
from dataclasses import dataclass, field, fields
from typing import Callable, Dict, List, Optional, Type

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

HEAD_REGISTRY: Dict[str, Type["BaseHead"]] = {}


def register_head(name: str) -> Callable:
    def decorator(cls):
        HEAD_REGISTRY[name] = cls
        return cls

    return decorator


@dataclass
class VLConfig:
    hidden_size: int = 32
    num_heads: int = 4
    vocab_size: int = 50
    max_position: int = 24
    image_size: int = 16
    patch_size: int = 4
    pad_token_id: int = 0
    eos_token_id: int = 1
    num_answers: int = 7
    learned_position: bool = True
    heads: List[str] = field(default_factory=lambda: ["itc", "vqa"])
    answer_weights: Optional[List[float]] = None


@dataclass
class ModelOutput:
    def to_tuple(self) -> tuple:
        return tuple(getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None)


@dataclass
class EncoderOutput(ModelOutput):
    last_hidden_state: Tensor
    pooled: Optional[Tensor] = None


@dataclass
class HeadOutput(ModelOutput):
    loss: Optional[Tensor] = None
    logits: Optional[Tensor] = None

    def ranks(self) -> np.ndarray:
        scores = np.array(self.logits.detach())  # raises
        return (-scores).argsort(axis=1).argsort(axis=1).diagonal()

    def recall(self, k: int = 1) -> float:
        top = self.logits.topk(k, dim=1).indices.cpu()
        return (top == torch.arange(len(top)).unsqueeze(1)).any(1).float().mean().item()


def sincos_position(grid: int, dim: int) -> np.ndarray:
    omega = 1.0 / 10000 ** (np.arange(dim // 4, dtype=np.float32) / (dim / 4))
    ys, xs = (np.outer(axis.reshape(-1), omega) for axis in np.mgrid[:grid, :grid].astype(np.float32))
    return np.concatenate([np.sin(ys), np.cos(ys), np.sin(xs), np.cos(xs)], axis=1)


class PatchEmbed(nn.Module):
    def __init__(self, config: VLConfig) -> None:
        super().__init__()
        grid = config.image_size // config.patch_size
        self.proj = nn.Conv2d(3, config.hidden_size, config.patch_size, stride=config.patch_size)
        if config.learned_position:
            self.position = nn.Parameter(torch.zeros(1, grid * grid, config.hidden_size))
        else:
            self.position = torch.from_numpy(sincos_position(grid, config.hidden_size)).float().unsqueeze(0)

    def forward(self, pixel_values: Tensor) -> Tensor:
        x = self.proj(pixel_values).flatten(2).transpose(1, 2)
        return x + self.position  # raises


class TextEmbeddings(nn.Module):
    def __init__(self, config: VLConfig) -> None:
        super().__init__()
        self.word = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=config.pad_token_id)
        self.position = nn.Embedding(config.max_position, config.hidden_size)
        self.token_type = nn.Embedding(2, config.hidden_size)
        self.register_buffer("position_ids", torch.arange(config.max_position).unsqueeze(0), persistent=False)

    def forward(self, input_ids: Tensor, token_type_ids: Optional[Tensor] = None, past_length: int = 0) -> Tensor:
        length = input_ids.size(1)
        positions = self.position_ids[:, past_length:past_length + length]
        if past_length:
            positions = torch.arange(past_length, past_length + length).unsqueeze(0)
        x = self.word(input_ids)
        x = x + self.position(positions)  # raises
        return x + self.token_type(torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids)


class Attention(nn.Module):
    def __init__(self, config: VLConfig, causal: bool = False) -> None:
        super().__init__()
        self.num_heads, self.causal = config.num_heads, causal
        self.q, self.kv = nn.Linear(config.hidden_size, config.hidden_size), nn.Linear(config.hidden_size, 2 * config.hidden_size)
        self.out = nn.Linear(config.hidden_size, config.hidden_size)

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(self, x: Tensor, context: Optional[Tensor] = None, mask: Optional[Tensor] = None) -> Tensor:
        q, (k, v) = self.split(self.q(x)), map(self.split, self.kv(x if context is None else context).chunk(2, dim=-1))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None, None, :], torch.finfo(scores.dtype).min)
        if self.causal:
            future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(future, float("-inf"))  # raises
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, config: VLConfig, causal: bool = False, cross: bool = False) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(config.hidden_size), nn.LayerNorm(config.hidden_size)
        self.attn = Attention(config, causal)
        self.cross = Attention(config) if cross else None
        self.mlp = nn.Sequential(nn.Linear(config.hidden_size, 64), nn.GELU(), nn.Linear(64, config.hidden_size))

    def forward(self, x, mask=None, context=None):
        x = x + self.attn(self.norm1(x), mask=mask)
        if self.cross is not None and context is not None:
            x = x + self.cross(x, context=context)
        return x + self.mlp(self.norm2(x))


class VisionEncoder(nn.Module):
    def __init__(self, config: VLConfig) -> None:
        super().__init__()
        self.embed, self.block = PatchEmbed(config), Block(config)

    def forward(self, pixel_values) -> EncoderOutput:
        x = self.block(self.embed(pixel_values))
        return EncoderOutput(x, x.mean(1))


class TextEncoder(nn.Module):
    def __init__(self, config: VLConfig, causal: bool = False, cross: bool = False) -> None:
        super().__init__()
        self.config = config
        self.embed, self.block = TextEmbeddings(config), Block(config, causal, cross)

    def forward(self, input_ids, context=None, past_length: int = 0) -> EncoderOutput:
        x = self.block(self.embed(input_ids, past_length=past_length), input_ids != self.config.pad_token_id, context)
        eos = (input_ids == self.config.eos_token_id).int().argmax(-1)
        return EncoderOutput(x, x[torch.arange(x.size(0)), eos])


class BaseHead(nn.Module):
    def __init__(self, config: VLConfig) -> None:
        super().__init__()
        self.config = config


@register_head("itc")
class ContrastiveHead(BaseHead):
    def __init__(self, config):
        super().__init__(config)
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def forward(self, image, text, labels=None):
        logits = self.logit_scale.exp() * F.normalize(image, dim=-1) @ F.normalize(text, dim=-1).t()
        target = torch.arange(logits.size(0), device=logits.device)
        return HeadOutput((F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2, logits)


@register_head("itm")
class MatchingHead(BaseHead):
    def __init__(self, config):
        super().__init__(config)
        self.proj = nn.Linear(2 * config.hidden_size, 2)

    def forward(self, image, text, labels=None):
        weights = (image @ text.t()).softmax(1).detach().cpu().fill_diagonal_(0)
        negatives = text[torch.multinomial(weights, 1).squeeze(1)]
        logits = self.proj(torch.cat([torch.cat([image, text], 1), torch.cat([image, negatives], 1)]))
        target = torch.ones(len(logits), dtype=torch.long)
        target[len(image):] = 0
        return HeadOutput(F.cross_entropy(logits, target), logits)  # raises


@register_head("vqa")
class AnswerHead(BaseHead):
    def __init__(self, config):
        super().__init__(config)
        self.proj = nn.Linear(config.hidden_size, config.num_answers)

    def forward(self, image, text, labels=None):
        logits, loss = self.proj(image * text), None
        if labels is not None and self.config.answer_weights:
            weight = torch.tensor(self.config.answer_weights)
            loss = F.cross_entropy(logits, labels, weight, label_smoothing=0.1)  # raises
        elif labels is not None:
            loss = F.cross_entropy(logits, labels)
        return HeadOutput(loss, logits)


class VLModel(nn.Module):
    def __init__(self, config: VLConfig) -> None:
        super().__init__()
        self.vision, self.text = VisionEncoder(config), TextEncoder(config)
        self.heads = nn.ModuleDict({name: HEAD_REGISTRY[name](config) for name in config.heads})

    def forward(self, pixel_values, input_ids, labels: Optional[Dict[str, Tensor]] = None) -> Dict[str, HeadOutput]:
        image, text = self.vision(pixel_values).pooled, self.text(input_ids).pooled
        return {name: head(image, text, (labels or {}).get(name)) for name, head in self.heads.items()}


class ParallelVLModel(VLModel):
    """Vision tower on the first device, language tower and heads on the last."""

    def parallelize(self, devices: List[str]) -> "ParallelVLModel":
        self.vision.to(devices[0])
        self.text.to(devices[-1])
        self.heads.to(devices[-1])
        return self

    def forward(self, pixel_values, input_ids, labels=None):
        text = self.text(input_ids.to(self.text.embed.word.weight.device)).pooled
        image = self.vision(pixel_values).pooled.to(text.device)
        return {name: head(image, text, (labels or {}).get(name)) for name, head in self.heads.items()}

    def similarity(self, pixel_values, input_ids) -> Tensor:
        image = self.vision(pixel_values).pooled
        text = self.text(input_ids.to(self.text.embed.word.weight.device)).pooled
        return torch.einsum("id,jd->ij", F.normalize(image, dim=-1), F.normalize(text, dim=-1))  # raises


class Captioner(nn.Module):
    def __init__(self, config: VLConfig, causal: bool = False) -> None:
        super().__init__()
        self.config, self.vision = config, VisionEncoder(config)
        self.decoder, self.lm_head = TextEncoder(config, causal, cross=True), nn.Linear(config.hidden_size, config.vocab_size)

    @torch.no_grad()
    def generate(self, pixel_values: Tensor, max_length: int = 5, stop_early: bool = False) -> Tensor:
        context = self.vision(pixel_values).last_hidden_state
        ids = torch.full((len(context), 1), 2, dtype=torch.long, device=context.device)
        unfinished = torch.ones(len(context), dtype=torch.long)
        for _ in range(max_length):
            token = self.lm_head(self.decoder(ids, context).last_hidden_state[:, -1]).argmax(-1)
            if stop_early:
                token = token * unfinished + self.config.pad_token_id * (1 - unfinished)  # raises
                unfinished = unfinished.mul((token != self.config.eos_token_id).long())
            ids = torch.cat([ids, token.unsqueeze(1)], dim=1)
        return ids
