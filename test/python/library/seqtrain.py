"""Sequence model training: collation, decoding, preference losses, PPO, criterions, meters, optimizers."""
import math
from collections import OrderedDict, deque
from contextlib import contextmanager
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


# ----------------------------------------------------------------------------------------------------------------- utils
def move_to_device(sample: Any, device) -> Any:
    if torch.is_tensor(sample):
        return sample.to(device=device, non_blocking=True)
    if isinstance(sample, dict):
        return {key: move_to_device(value, device) for key, value in sample.items()}
    if isinstance(sample, (list, tuple)):
        return type(sample)(move_to_device(x, device) for x in sample)
    return sample


def move_to_cuda(sample):
    return move_to_device(sample, torch.cuda.current_device())


def lengths_to_mask(lengths: Tensor, max_len: Optional[int] = None) -> Tensor:
    max_len = int(lengths.max()) if max_len is None else max_len
    return torch.arange(max_len).expand(len(lengths), max_len) < lengths.unsqueeze(1)  # raises


def lengths_to_padding_mask(lens: Tensor) -> Tensor:
    bsz, max_lens = lens.size(0), int(lens.max())
    mask = torch.arange(max_lens).to(lens.device).view(1, max_lens)
    return mask.expand(bsz, -1) >= lens.view(bsz, 1).expand(-1, max_lens)


def collate_tokens(values: Sequence[Tensor], pad_idx: int, left_pad: bool = False) -> Tensor:
    size = max(v.size(0) for v in values)
    res = values[0].new(len(values), size).fill_(pad_idx)
    for i, v in enumerate(values):
        dst = res[i][size - len(v):] if left_pad else res[i][:len(v)]
        dst.copy_(v)
    return res


def make_positions(tensor: Tensor, padding_idx: int) -> Tensor:
    mask = tensor.ne(padding_idx).int()
    return (torch.cumsum(mask, dim=1).type_as(mask) * mask).long() + padding_idx


def first_true_indices(bools: Tensor, dtype=torch.long) -> Tensor:
    row_len = bools.size(-1)
    zero_or_index = row_len * (~bools).type(dtype) + torch.arange(row_len, dtype=dtype)  # raises
    return torch.min(zero_or_index, dim=-1).values


def logprobs_from_logits(logits: Tensor, labels: Tensor, gather: bool = True) -> Tensor:
    logp = F.log_softmax(logits, dim=2)
    return torch.gather(logp, 2, labels.unsqueeze(2)).squeeze(-1) if gather else logp


def masked_mean(values: Tensor, mask: Tensor, axis: Optional[int] = None) -> Tensor:
    if axis is not None:
        return (values * mask).sum(axis=axis) / mask.sum(axis=axis)
    return (values * mask).sum() / mask.sum()


def masked_whiten(values: Tensor, mask: Tensor, shift_mean: bool = True) -> Tensor:
    mean = masked_mean(values, mask)
    var = masked_mean((values - mean) ** 2, mask)
    whitened = (values - mean) * torch.rsqrt(var + 1e-8)
    return whitened if shift_mean else whitened + mean


# -------------------------------------------------------------------------------------------------------------- modules
class SinusoidalPositionalEmbedding(nn.Module):
    """Sinusoids of any length; the table grows when a longer sentence comes."""

    def __init__(self, embedding_dim: int, padding_idx: int, init_size: int = 8):
        super().__init__()
        self.embedding_dim, self.padding_idx = embedding_dim, padding_idx
        self.weights = self.get_embedding(init_size, embedding_dim, padding_idx)
        self.register_buffer("_float_tensor", torch.FloatTensor(1))

    @staticmethod
    def get_embedding(num_embeddings: int, embedding_dim: int, padding_idx: Optional[int] = None) -> Tensor:
        half = embedding_dim // 2
        emb = torch.exp(torch.arange(half, dtype=torch.float) * -(math.log(10000) / max(half - 1, 1)))
        emb = torch.arange(num_embeddings, dtype=torch.float).unsqueeze(1) * emb.unsqueeze(0)
        emb = torch.cat([torch.sin(emb), torch.cos(emb)], dim=1)
        if padding_idx is not None:
            emb[padding_idx, :] = 0
        return emb

    def forward(self, input: Tensor) -> Tensor:
        bsz, seq_len = input.size()
        max_pos = self.padding_idx + 1 + seq_len
        if max_pos > self.weights.size(0):
            self.weights = self.get_embedding(max_pos, self.embedding_dim, self.padding_idx)
        self.weights = self.weights.to(self._float_tensor)
        positions = make_positions(input, self.padding_idx)
        return self.weights.index_select(0, positions.view(-1)).view(bsz, seq_len, -1).detach()


class RotaryEmbedding(nn.Module):
    def __init__(self, dim: int, base: int = 10000):
        super().__init__()
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))
        self.register_buffer("inv_freq", inv_freq)
        self.seq_len_cached = None
        self.cos_cached = self.sin_cached = None

    def _tables(self, seq_len: int, device):
        if seq_len != self.seq_len_cached:
            self.seq_len_cached = seq_len
            freqs = torch.outer(torch.arange(seq_len, device=device).type_as(self.inv_freq), self.inv_freq)
            emb = torch.cat((freqs, freqs), dim=-1)
            self.cos_cached, self.sin_cached = emb.cos()[None], emb.sin()[None]
        return self.cos_cached, self.sin_cached

    def forward(self, q: Tensor) -> Tensor:
        cos, sin = self._tables(q.size(1), q.device)
        q1, q2 = q.chunk(2, dim=-1)
        return q * cos + torch.cat((-q2, q1), dim=-1) * sin


class ALiBi(nn.Module):
    """Linear biases; made for the longest sequence so far."""

    def __init__(self, heads: int):
        super().__init__()
        self.heads = heads
        self.register_buffer("slopes", torch.tensor([2 ** (-8 * (i + 1) / heads) for i in range(heads)]))
        self._bias: Optional[Tensor] = None

    def forward(self, scores: Tensor) -> Tensor:
        n = scores.size(-1)
        if self._bias is None or self._bias.size(-1) < n:
            self._bias = self.slopes.view(-1, 1, 1) * torch.arange(n).view(1, 1, -1)  # raises
        return scores + self._bias[..., :n]


class CausalSelfAttention(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self._future_mask = torch.empty(0)

    def buffered_future_mask(self, tensor: Tensor) -> Tensor:
        dim = tensor.size(1)
        if self._future_mask.size(0) == 0 or self._future_mask.device != tensor.device or self._future_mask.size(0) < dim:
            self._future_mask = torch.triu(torch.full((dim, dim), float("-inf")), 1)
        self._future_mask = self._future_mask.to(tensor)
        return self._future_mask[:dim, :dim]

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        att = q @ k.transpose(1, 2) / math.sqrt(x.size(-1)) + self.buffered_future_mask(x)
        return self.out(att.softmax(-1) @ v)


class ValueHead(nn.Module):
    def __init__(self, base: nn.Module, dim: int):
        super().__init__()
        self.base = base
        self.summary = nn.Linear(dim, 1)

    def forward(self, ids):
        return self.summary(self.base(ids)).squeeze(-1)


# -------------------------------------------------------------------------------------------------------------- decoding
@torch.no_grad()
def sample_decode(model: Callable, prompt: Tensor, max_new_tokens: int, top_p: float = 0.9, eos: int = 0) -> Tensor:
    done = torch.zeros(prompt.size(0), dtype=torch.bool)
    for _ in range(max_new_tokens):
        probs, idx = model(prompt)[:, -1].softmax(-1).sort(descending=True)
        probs = probs.masked_fill(probs.cumsum(-1) - probs > top_p, 0.0)
        token = idx.gather(1, torch.multinomial(probs, 1))
        prompt = torch.cat([prompt, token], dim=1)
        done |= token.squeeze(1) == eos  # raises
        if done.all():
            break
    return prompt


@torch.no_grad()
def beam_search(model: Callable, prompt: Tensor, beam: int, steps: int) -> Tuple[Tensor, Tensor]:
    bsz = prompt.size(0)
    tokens = prompt.repeat_interleave(beam, 0)
    scores = torch.zeros(bsz, beam, device=prompt.device)
    scores[:, 1:] = float("-inf")
    bbsz_offsets = (torch.arange(0, bsz) * beam).unsqueeze(1)
    for _ in range(steps):
        lprobs = F.log_softmax(model(tokens)[:, -1], dim=-1).view(bsz, beam, -1)
        vocab = lprobs.size(-1)
        scores, flat = (scores.unsqueeze(-1) + lprobs).view(bsz, -1).topk(beam)
        rows = torch.div(flat, vocab, rounding_mode="floor") + bbsz_offsets  # raises
        tokens = torch.cat([tokens[rows.view(-1)], (flat % vocab).view(-1, 1)], dim=1)
    return tokens.view(bsz, beam, -1), scores


# ------------------------------------------------------------------------------------------------------------ criterions
def dpo_loss(policy_chosen: Tensor, policy_rejected: Tensor, ref_chosen: Tensor, ref_rejected: Tensor, beta: float = 0.1,
             reference_free: bool = False) -> Tuple[Tensor, Tensor]:
    ref_logratios = torch.tensor([0]).to(policy_chosen.device) if reference_free else ref_chosen - ref_rejected
    logits = policy_chosen - policy_rejected - ref_logratios
    rewards = beta * (policy_chosen - ref_chosen).detach()
    return -F.logsigmoid(beta * logits), rewards


def kto_loss(policy_logps: Tensor, ref_logps: Tensor, desirable: List[bool], beta: float = 0.1) -> Tensor:
    logratios = policy_logps - ref_logps
    kl = logratios.mean().clamp(min=0).detach()
    signs = torch.tensor([1.0 if d else -1.0 for d in desirable])
    return (1 - torch.sigmoid(beta * (logratios - kl) * signs)).mean()  # raises


class AdaptiveKLController:
    def __init__(self, init_kl_coef: float, target: float, horizon: int):
        self.value, self.target, self.horizon = init_kl_coef, target, horizon

    def update(self, current, n_steps):
        error = np.clip(current / self.target - 1, -0.2, 0.2)
        self.value *= 1 + error * n_steps / self.horizon


class PPOTrainer:
    def __init__(self, model: nn.Module, ref_model: nn.Module, kl_coef: float = 0.1, gamma: float = 1.0, lam: float = 0.95):
        self.model, self.ref_model = model, ref_model
        self.kl_ctl = AdaptiveKLController(kl_coef, 6.0, 100)
        self.gamma, self.lam = gamma, lam
        self.device = next(model.parameters()).device
        self.running_mean = torch.zeros(1)
        self.running_var = torch.ones(1, device=self.device)
        self.score_buffer: deque = deque(maxlen=4)

    def compute_rewards(self, scores: Sequence[Tensor], logprobs: Tensor, ref_logprobs: Tensor, masks: Tensor) -> Tensor:
        kl = logprobs - ref_logprobs
        rewards = -self.kl_ctl.value * kl
        last = masks.long().cumsum(1).argmax(1)
        for i, score in enumerate(scores):
            rewards[i, last[i]] += score
        self.kl_ctl.update(float((kl * masks).sum(1).mean()), len(rewards))
        return rewards

    def normalize_scores(self, scores: Tensor) -> Tensor:
        return (scores - scores.mean()) / (scores.std() + self.running_var.sqrt())

    def running_normalize(self, scores: Tensor) -> Tensor:
        self.running_mean = 0.9 * self.running_mean + 0.1 * scores.mean()  # raises
        return scores - self.running_mean

    def compute_advantages(self, values: Tensor, rewards: Tensor, mask: Tensor) -> Tuple[Tensor, Tensor]:
        lastgaelam, advantages_reversed = 0, []
        gen_len = rewards.shape[-1]
        for t in reversed(range(gen_len)):
            nextvalues = values[:, t + 1] if t < gen_len - 1 else 0.0
            delta = rewards[:, t] + self.gamma * nextvalues - values[:, t]
            lastgaelam = delta + self.gamma * self.lam * lastgaelam
            advantages_reversed.append(lastgaelam)
        advantages = torch.stack(advantages_reversed[::-1]).transpose(0, 1)
        return masked_whiten(advantages, mask), advantages + values

    def step(self, ids: Tensor, scores: Sequence[Tensor], cliprange: float = 0.2) -> Dict[str, float]:
        values = self.model(ids)
        with torch.no_grad():
            ref = self.ref_model(ids)
        rewards = self.compute_rewards(scores, values.detach(), ref, torch.ones_like(ids))
        advantages, returns = self.compute_advantages(values.detach(), rewards, torch.ones_like(ids))
        loss = 0.5 * (values - returns).pow(2).mean() - (advantages * values).mean().clamp(-cliprange, cliprange)
        loss.backward()
        self.score_buffer.extend(s.cpu() for s in scores)
        return {"loss": loss.item(), "score": torch.stack(list(self.score_buffer)).mean().item()}

    def explained_variance(self, values: Tensor, returns: Tensor) -> float:
        return float(1 - np.var((returns - values).detach().numpy()) / np.var(returns.tolist()))  # raises


# ----------------------------------------------------------------------------------------------------- state of training
class AverageMeter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.sum, self.count = 0, 0

    def update(self, val, n=1):
        self.sum = self.sum + val * n
        self.count = self.count + n

    @property
    def avg(self):
        return self.sum / self.count if self.count else self.sum


class ReplayBuffer:
    """Ring of transitions; all but the priorities live where they are sampled."""

    def __init__(self, capacity: int, obs_dim: int, device="cpu"):
        self.obs = torch.zeros(capacity, obs_dim, device=device)
        self.reward = torch.zeros(capacity, device=device)
        self.priority = torch.ones(capacity)
        self.capacity, self.ptr, self.device = capacity, 0, device

    def add(self, obs: Tensor, reward: float) -> None:
        self.obs[self.ptr % self.capacity] = obs.to(self.device)
        self.reward[self.ptr % self.capacity] = reward
        self.ptr += 1

    def sample(self, n: int) -> Tuple[Tensor, Tensor, Tensor]:
        rows = torch.multinomial(self.priority, n, replacement=True)
        return self.obs[rows], self.reward[rows], rows

    def update_priorities(self, rows: Tensor, td_error: Tensor) -> None:
        self.priority[rows] = td_error.abs() + 1e-3  # raises


class EMATeacher:
    def __init__(self, model: nn.Module, decay: float = 0.9):
        self.decay = decay
        self.state = OrderedDict((k, v.detach().cpu().clone()) for k, v in model.state_dict().items())

    def update(self, model: nn.Module) -> None:
        for k, v in model.state_dict().items():
            self.state[k].mul_(self.decay).add_(v, alpha=1 - self.decay)  # raises

    @contextmanager
    def applied(self, model: nn.Module):
        backup = {k: v.clone() for k, v in model.state_dict().items()}
        model.load_state_dict(self.state)
        yield model
        model.load_state_dict(backup)


class LionOptimizer(torch.optim.Optimizer):
    def __init__(self, params, lr: float = 1e-3, betas=(0.9, 0.99)):
        super().__init__(params, dict(lr=lr, betas=betas))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                if "exp_avg" not in state:
                    state["step"] = torch.tensor(0.0)
                    state["exp_avg"] = torch.zeros_like(p)
                state["step"] += 1
                p.add_((state["exp_avg"] * b1 + p.grad * (1 - b1)).sign(), alpha=-group["lr"])
                state["exp_avg"].mul_(b2).add_(p.grad, alpha=1 - b2)


class AdafactorLike(torch.optim.Optimizer):
    def __init__(self, params, lr: float = 1e-3):
        super().__init__(params, dict(lr=lr))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["row"] = torch.zeros(p.shape[:-1]).to(p.grad)
                    state["col"] = torch.zeros(p.shape[:-2] + p.shape[-1:])
                update = p.grad ** 2 + 1e-30
                state["row"].mul_(0.9).add_(update.mean(-1), alpha=0.1)
                state["col"].mul_(0.9).add_(update.mean(-2), alpha=0.1)  # raises
                r = (state["row"] / state["row"].mean()).rsqrt().unsqueeze(-1)
                p.add_(r * state["col"].rsqrt() * p.grad, alpha=-group["lr"])
