import torch
import geometry3d_parts as g

D = "cuda:0"


def randn(*shape):
    torch.manual_seed(2)
    return torch.randn(*shape, device=D)


def pose():
    return g.Transform.of(g.rotation_from_vector(randn(1, 3)), randn(1, 3) * 0.1)


def camera():
    return g.Pinhole(5.0, (4, 6))


def marcher():
    return g.RayMarcher(camera())


def t():
    return torch.linspace(0.5, 4, 8, device=D).expand(3, 8)


def packed():
    return g.PackedClouds([randn(3, 3), randn(5, 3)])


def mesh():
    faces = [[0, 1, 2], [0, 2, 3], [1, 2, 3]]
    return g.Mesh(randn(4, 3), faces)


def volume():
    return g.FusionVolume().to(D)


CALLS = {
    "small_rotation": lambda: g.small_rotation(randn(2, 3)),
    "normalise_cloud": lambda: g.normalise_cloud(randn(5, 3), pose()),
    "align_axes": lambda: g.align_axes(randn(5, 3), pose()),
    "kabsch": lambda: g.kabsch(randn(6, 3), randn(6, 3)),
    "project": lambda: camera().project(randn(6, 3)),
    "rays": lambda: camera().rays(torch.eye(3, device=D), torch.zeros(3, device=D)),
    "unproject": lambda: camera().unproject(torch.ones(4, 6, device=D)),
    "encode": lambda: g.FrequencyEncoding().to(D)(randn(4, 3)),
    "encode_smooth": lambda: g.FrequencyEncoding(smooth=True).to(D)(randn(4, 3)),
    "hash_nearest": lambda: g.HashLevel().to(D).nearest(randn(4, 3).sigmoid()),
    "hash": lambda: g.HashLevel().to(D)(randn(4, 3).sigmoid()),
    "march_depths": lambda: marcher().weights(randn(3, 8), marcher().depths(randn(3, 3), True), endless=False),
    "march_endless": lambda: marcher().weights(randn(3, 8), t()),
    "composite": lambda: marcher().composite(randn(3, 8).softmax(-1), randn(3, 8, 3)),
    "refine": lambda: marcher().refine(t(), randn(3, 8).softmax(-1)),
    "refine_random": lambda: marcher().refine(t(), randn(3, 8).softmax(-1), uniform=False),
    "shade": lambda: g.shade(randn(5, 3), randn(5, 3)),
    "shade_ambient": lambda: g.shade_ambient(randn(5, 3), randn(5, 3)),
    "abstraction": lambda: g.SetAbstraction().to(D)(randn(2, 9, 3)),
    "abstraction_ball": lambda: g.SetAbstraction(radius=1.0).to(D)(randn(2, 9, 3)),
    "abstraction_pooled": lambda: g.SetAbstraction().to(D).pooled(randn(2, 9, 3)),
    "input_transform": lambda: g.InputTransform().to(D)(randn(2, 9, 3)),
    "packed_centered": lambda: packed().centered(randn(2, 3)),
    "packed_means": lambda: packed().means(),
    "packed_padded": lambda: packed().padded(),
    "mesh_edges": lambda: mesh().edge_loss(),
    "mesh_normals": lambda: mesh().vertex_normals(),
    "mesh_laplacian": lambda: mesh().laplacian(),
    "volume_minimum": lambda: volume().integrate(torch.ones(4, 6, device=D), camera(), average=False),
    "volume_average": lambda: volume().integrate(torch.ones(4, 6, device=D), camera()),
}
