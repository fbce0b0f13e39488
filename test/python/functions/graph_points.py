import torch
import torch.nn as nn
import torch.nn.functional as F


def scatter_sum(src, index, dim_size):
    out = src.new_zeros(dim_size, src.size(-1))
    return out.index_add_(0, index, src)


def scatter_mean(src, index, dim_size):
    total = scatter_sum(src, index, dim_size)
    count = torch.zeros(dim_size).scatter_add_(0, index, torch.ones_like(index, dtype=torch.float))  # raises
    return total / count.clamp(min=1).unsqueeze(-1)


class Data(object):
    def __init__(self, x, edge_index, y=None, batch=None):
        self.x, self.edge_index, self.y, self.batch = x, edge_index, y, batch

    def to(self, device):
        for k, v in self.__dict__.items():
            if torch.is_tensor(v):
                self.__dict__[k] = v.to(device)
        return self


def ring(n=5):
    src = torch.arange(n)
    return Data(torch.randn(n, 3), torch.stack([src, (src + 1) % n]), torch.randint(2, (n,)), torch.zeros(n, dtype=torch.long))


class GCNConv(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.lin = nn.Linear(i, o, bias=False)
        self.bias = nn.Parameter(torch.zeros(o))

    def forward(self, x, edge_index):
        n = x.size(0)
        loops = torch.arange(n, device=edge_index.device)
        row, col = torch.cat([edge_index, torch.stack([loops, loops])], 1)
        deg = torch.bincount(col, minlength=n).to(x.dtype)
        norm = deg[row].rsqrt() * deg[col].rsqrt()
        return scatter_sum(self.lin(x)[row] * norm[:, None], col, n) + self.bias


def case_gcn_data_moves_itself():
    data = ring()
    data.to("cuda")
    model = GCNConv(3, 2).to("cuda")
    out = model(data.x, data.edge_index)
    mask = torch.tensor([True, False, True, True, False])
    F.cross_entropy(out[mask], data.y[mask]).backward()


def case_gcn_mean_pool():
    data = ring().to("cuda")
    h = GCNConv(3, 2).to("cuda")(data.x, data.edge_index)
    return scatter_mean(h, data.batch, 1)


def negative_edges(edge_index, n, k):
    out = torch.randint(0, n, (2, k))
    keep = out[0] != out[1]
    return out[:, keep]


def case_link_prediction():
    data = ring().to("cuda")
    z = GCNConv(3, 2).to("cuda")(data.x, data.edge_index)
    neg = negative_edges(data.edge_index, 5, 6)
    score = lambda e: (z[e[0]] * z[e[1]]).sum(-1)
    pos, bad = score(data.edge_index), score(neg)
    labels = torch.cat([torch.ones_like(pos), torch.zeros_like(bad)])
    return F.binary_cross_entropy_with_logits(torch.cat([pos, bad]), labels)


def case_link_prediction_joined():
    data = ring().to("cuda")
    z = GCNConv(3, 2).to("cuda")(data.x, data.edge_index)
    neg = negative_edges(data.edge_index, 5, 6)
    edges = torch.cat([data.edge_index, neg], dim=-1)  # raises
    labels = torch.zeros(edges.size(1), device=z.device)
    labels[: data.edge_index.size(1)] = 1
    return F.binary_cross_entropy_with_logits((z[edges[0]] * z[edges[1]]).sum(-1), labels)


def farthest_point_sample(xyz, npoint):
    device = xyz.device
    B, N, C = xyz.shape
    centroids = torch.zeros(B, npoint, dtype=torch.long).to(device)
    distance = torch.ones(B, N).to(device) * 1e10
    farthest = torch.randint(0, N, (B,), dtype=torch.long).to(device)
    batch_indices = torch.arange(B, dtype=torch.long).to(device)
    for i in range(npoint):
        centroids[:, i] = farthest
        centroid = xyz[batch_indices, farthest, :].view(B, 1, 3)
        dist = torch.sum((xyz - centroid) ** 2, -1)
        distance[dist < distance] = dist[dist < distance]
        farthest = torch.max(distance, -1)[1]
    return centroids


def ball_query(radius, nsample, xyz, new_xyz):
    B, N, _ = xyz.shape
    S = new_xyz.shape[1]
    group_idx = torch.arange(N, dtype=torch.long).view(1, 1, N).repeat([B, S, 1])
    sqrdists = torch.cdist(new_xyz, xyz) ** 2
    group_idx[sqrdists > radius ** 2] = N
    group_idx = group_idx.sort(dim=-1)[0][:, :, :nsample]
    group_first = group_idx[:, :, :1].expand(B, S, nsample)
    mask = group_idx == N
    group_idx[mask] = group_first[mask]
    return group_idx


def case_pointnet_fps():
    xyz = torch.rand(2, 8, 3, device="cuda:1")
    idx = farthest_point_sample(xyz, 3)
    return torch.gather(xyz, 1, idx[..., None].expand(-1, -1, 3))


def case_pointnet_ball_query():
    xyz = torch.rand(2, 8, 3, device="cuda:1")
    idx = ball_query(0.5, 4, xyz, xyz[:, :3])
    grouped = xyz[torch.arange(2).view(2, 1, 1), idx]
    return grouped - xyz[:, :3, None]


def homogeneous(points):
    return torch.cat([points, torch.ones(points.shape[0], 1)], dim=1)  # raises


def project(points, K, pose):
    cam = points @ pose[:3, :3].t() + pose[:3, 3]
    uv = cam @ K.t()
    return uv[:, :2] / uv[:, 2:].clamp(min=1e-6)


def case_reprojection():
    pts = torch.rand(6, 3, device="cuda") + 1
    K, pose = torch.eye(3).cuda(), torch.eye(4).cuda()
    return project(pts, K, pose)


def case_reprojection_homogeneous():
    pts = torch.rand(6, 3, device="cuda") + 1
    P = torch.eye(3, 4).to(pts)
    return homogeneous(pts) @ P.t()


def rodrigues(axis_angle):
    theta = axis_angle.norm(dim=-1, keepdim=True).clamp(min=1e-8)
    k = axis_angle / theta
    zero = torch.zeros_like(k[:, 0])
    K = torch.stack([zero, -k[:, 2], k[:, 1], k[:, 2], zero, -k[:, 0], -k[:, 1], k[:, 0], zero], 1).view(-1, 3, 3)
    eye = torch.eye(3, dtype=K.dtype, device=K.device)
    s, c = theta.sin()[..., None], theta.cos()[..., None]
    return eye + s * K + (1 - c) * K @ K


class NeRFRenderer(nn.Module):
    def __init__(self, near=0.0, far=1.0, n=4):
        super().__init__()
        self.near, self.far, self.n = near, far, n
        self.mlp = nn.Linear(3, 4)

    def forward(self, rays_o, rays_d, perturb=False):
        z = torch.linspace(self.near, self.far, self.n, device=rays_o.device).expand(rays_o.size(0), self.n)
        if perturb:
            mids = 0.5 * (z[..., 1:] + z[..., :-1])
            upper, lower = torch.cat([mids, z[..., -1:]], -1), torch.cat([z[..., :1], mids], -1)
            z = lower + (upper - lower) * torch.rand(z.shape, device=z.device)
        pts = rays_o[:, None] + rays_d[:, None] * z[..., None]
        raw = self.mlp(pts)
        dists = torch.cat([z[:, 1:] - z[:, :-1], torch.Tensor([1e10]).expand(z[:, :1].shape)], -1)  # raises
        alpha = 1 - torch.exp(-raw[..., 3].relu() * dists)
        return (alpha[..., None] * raw[..., :3].sigmoid()).sum(1)


def case_nerf_rays():
    r = NeRFRenderer().cuda()
    d = F.normalize(torch.randn(2, 3).cuda(), dim=-1)
    return r(torch.zeros_like(d), d, perturb=True)


def case_rotations():
    R = rodrigues(torch.randn(4, 3).to("cuda:2"))
    pts = torch.rand(4, 5, 3).to(R)
    return torch.einsum("bij,bnj->bni", R, pts)


def case_sparse_adjacency():
    idx = torch.tensor([[0, 1, 2], [1, 2, 0]])
    A = torch.eye(3)[idx[1]].cuda()
    feats = nn.Embedding(3, 2).cuda()
    h = A @ feats.weight
    degree = torch.zeros(3)
    degree.index_put_((idx[0],), torch.ones(3), accumulate=True)
    h = h / degree.max()
    return h[idx[0]]


def case_einsum_table():
    table = nn.Parameter(torch.randn(4, 3, device="cuda"))
    onehot = F.one_hot(torch.tensor([0, 2, 3]), 4).float()
    return torch.einsum("bk,kd->bd", onehot, table)  # raises


def nms(boxes, scores, thr=0.5):
    order = scores.argsort(descending=True)
    keep = []
    while order.numel() > 0:
        i = order[0].item()
        keep.append(i)
        if order.numel() == 1:
            break
        rest = order[1:]
        xx1 = boxes[rest, 0].clamp(min=boxes[i, 0].item())
        xx2 = boxes[rest, 2].clamp(max=boxes[i, 2].item())
        inter = (xx2 - xx1).clamp(min=0)
        order = rest[inter <= thr]
    return torch.LongTensor(keep)


def case_detections():
    boxes = torch.rand(6, 4, device="cuda")
    scores = torch.rand(6, device="cuda")
    keep = nms(boxes, scores, 0.2)
    dets = torch.cat([boxes[keep], scores[keep, None]], 1)
    return dets[dets[:, 4] > 0.1]
