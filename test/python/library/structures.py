"""Containers for batched boxes, masks, meshes, images and voxels."""
import itertools
from collections import namedtuple
from typing import Any, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch
from torch import Tensor

Device = Union[str, torch.device]
Packed = namedtuple("Packed", ["verts", "faces", "first"])


# clean
class ImageList:
    def __init__(self, tensor: Tensor, image_sizes: List[Tuple[int, int]]):
        self.tensor, self.image_sizes = tensor, image_sizes

    def to(self, *args: Any, **kwargs: Any) -> "ImageList":
        return ImageList(self.tensor.to(*args, **kwargs), self.image_sizes)

    @staticmethod
    def from_tensors(tensors: Sequence[Tensor], size_divisibility: int = 0, pad_value: float = 0.) -> "ImageList":
        sizes = [tuple(t.shape[-2:]) for t in tensors]
        max_size = torch.tensor(sizes).max(0).values
        if size_divisibility > 1:
            max_size = torch.div(max_size + size_divisibility - 1, size_divisibility, rounding_mode="floor") * size_divisibility
        out = tensors[0].new_full((len(tensors), tensors[0].shape[0], *max_size.tolist()), pad_value)
        for slot, img in zip(out, tensors):
            slot[..., :img.shape[-2], :img.shape[-1]].copy_(img)
        return ImageList(out.contiguous(), sizes)

    def masks(self) -> Tensor:
        m = torch.zeros(len(self.image_sizes), *self.tensor.shape[-2:], dtype=torch.bool)
        for i, (h, w) in enumerate(self.image_sizes):
            m[i, :h, :w] = True
        return m.to(device=self.tensor.device)


# broken
class RotatedBoxes:
    def __init__(self, tensor: Tensor):
        device = tensor.device if isinstance(tensor, Tensor) else torch.device("cpu")
        self.tensor = torch.as_tensor(tensor, dtype=torch.float32, device=device).reshape(-1, 5)

    def to(self, device: Device) -> "RotatedBoxes":
        return RotatedBoxes(self.tensor.to(device=device))

    def clone(self) -> "RotatedBoxes":
        return RotatedBoxes(self.tensor.clone())

    def normalize_angles(self) -> None:
        self.tensor[:, 4] = (self.tensor[:, 4] + 180.) % 360. - 180.

    def corners(self) -> Tensor:
        cx, cy, w, h, a = self.tensor.unbind(-1)
        rad = a * (np.pi / 180.)
        unit = torch.tensor([[-.5, -.5], [.5, -.5], [.5, .5], [-.5, .5]])
        local = unit[None] * torch.stack([w, h], -1)[:, None]  # raises
        rot = torch.stack([rad.cos(), rad.sin(), -rad.sin(), rad.cos()], -1).view(-1, 2, 2)
        return local @ rot + torch.stack([cx, cy], -1)[:, None]


# broken
class Meshes:
    def __init__(self, verts: List[Tensor], faces: List[Tensor]):
        self._verts, self._faces = verts, faces
        self.device = verts[0].device if verts else torch.device("cpu")
        self._packed: Optional[Packed] = None

    def to(self, device: Device) -> "Meshes":
        return Meshes([v.to(device) for v in self._verts], [f.to(device) for f in self._faces])

    def packed(self) -> Packed:
        if self._packed is None:
            num = torch.tensor([len(v) for v in self._verts])
            first = num.cumsum(0) - num
            verts = torch.cat(self._verts)
            faces = torch.cat([f + first[i] for i, f in enumerate(self._faces)])      # 0-dim offsets
            self._packed = Packed(verts, faces, first)
        return self._packed

    def face_to_mesh(self) -> Tensor:
        counts = torch.tensor([len(f) for f in self._faces], device=self.device)
        return torch.arange(len(self._faces), device=self.device).repeat_interleave(counts)

    def vertex_normals(self) -> Tensor:
        p = self.packed()
        tri = p.verts[p.faces]
        n = torch.cross(tri[:, 1] - tri[:, 0], tri[:, 2] - tri[:, 0], dim=1)
        out = torch.zeros_like(p.verts)
        for c in range(3):
            out = out.index_add(0, p.faces[:, c], n)
        return torch.nn.functional.normalize(out, eps=1e-6, dim=1)

    def offset_by_mesh(self, offsets: Tensor) -> Tensor:
        p = self.packed()
        owner = (torch.arange(len(p.verts), device=self.device)[:, None] >= p.first[None]).sum(1) - 1  # raises
        return p.verts + offsets[owner]


# clean
def points_to_voxels(points: Tensor, size: float, origin: Union[Tensor, Sequence[float]] = (0., 0., 0.), reduce: str = "mean") -> Tuple[Tensor, Tensor]:
    origin = torch.as_tensor(origin, dtype=points.dtype, device=points.device)
    coords = torch.div(points - origin, size, rounding_mode="floor").long()
    uniq, inv = torch.unique(coords, dim=0, return_inverse=True)
    acc = points.new_zeros(uniq.size(0), points.size(1))
    acc.scatter_add_(0, inv[:, None].expand_as(points), points)
    if reduce == "mean":
        n = torch.zeros(uniq.size(0))
        n += torch.bincount(inv.cpu(), minlength=uniq.size(0))
        acc /= n[:, None].to(acc)
    return uniq, acc


# broken
def paste_masks(masks: Tensor, boxes: Tensor, image_shape: Tuple[int, int], threshold: float = .5, dev: Device = "cuda") -> Tensor:
    """(N, m, m) soft masks onto images"""
    h, w = image_shape
    if len(masks) == 0:
        return masks.new_empty((0,) + tuple(image_shape), dtype=torch.uint8)
    x0, y0, x1, y1 = torch.split(boxes, 1, dim=1)
    ys = torch.arange(0, h, device=dev).to(torch.float32) + .5
    xs = torch.arange(0, w, device=dev).to(torch.float32) + .5
    ys = (ys - y0) / (y1 - y0) * 2 - 1  # raises
    xs = (xs - x0) / (x1 - x0) * 2 - 1
    gx = xs[:, None, :].expand(len(masks), h, w)
    gy = ys[:, :, None].expand(len(masks), h, w)
    img = torch.nn.functional.grid_sample(masks[:, None].float(), torch.stack([gx, gy], dim=3), align_corners=False)
    return (img[:, 0] >= threshold).to(torch.uint8)


# clean
class RaggedBatch:
    """rows of different length; iterating yields views; supports star-unpacking"""

    def __init__(self, *rows: Tensor, pad: float = 0.):
        self.rows, self.pad = list(rows), pad

    @property
    def lengths(self) -> Tensor:
        return torch.tensor([len(r) for r in self.rows])

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.rows)

    def to(self, device: Device) -> "RaggedBatch":
        self.rows = [r.to(device) for r in self.rows]
        return self

    def dense(self) -> Tuple[Tensor, Tensor]:
        n = self.lengths
        out = torch.nn.utils.rnn.pad_sequence(self.rows, batch_first=True, padding_value=self.pad)
        mask = torch.arange(int(n.max()))[None] < n[:, None]
        return out, mask.to(out.device)

    def mean(self) -> Tensor:
        flat = torch.cat(self.rows)
        idx = torch.repeat_interleave(torch.arange(len(self.rows)), self.lengths).to(flat.device)
        tot = flat.new_zeros(len(self.rows)).index_add_(0, idx, flat)
        return tot / self.lengths.to(tot)

    @classmethod
    def chain(cls, *batches: "RaggedBatch") -> "RaggedBatch":
        return cls(*itertools.chain.from_iterable(batches))
