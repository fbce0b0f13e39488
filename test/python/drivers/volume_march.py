import torch
import volume_march as V

D = torch.device("cuda:0")


def pose():
    return torch.eye(4, device=D)


def rays(n=6):
    o = torch.randn(n, 3, device=D) * 0.1
    d = V.normalize(torch.randn(n, 3, device=D))
    one = torch.ones(n, 1, device=D)
    return V.Rays(o, d, 0.1 * one, 2 * one)


def r(*s):
    return torch.rand(*s, device=D)


def counts():
    return torch.tensor([2, 3, 1], device=D)


CALLS = {
    "camera": lambda: V.camera_rays(pose(), 3, 4),
    "camera_k": lambda: V.camera_rays_k(pose(), torch.eye(3, device=D), 3, 4),
    "ndc": lambda: V.ndc(rays(), 4, 4, 2.0),
    "aabb": lambda: V.hit_aabb(rays()),
    "spheres": lambda: V.hit_spheres(rays()),
    "stratified": lambda: V.stratified(rays(), 8, lindisp=True),
    "disparity": lambda: V.disparity(rays(), 5),
    "pdf": lambda: V.sample_pdf(r(4, 6), r(4, 5), 7),
    "pdf_det": lambda: V.merge(V.sample_pdf(r(4, 6), r(4, 5), 7, det=True), r(4, 3)),
    "posenc": lambda: V.posenc(r(5, 3)),
    "posenc_fast": lambda: V.posenc_fast(r(5, 3)),
    "windowed": lambda: V.windowed(r(5, 3), 4, 2.5),
    "ipe": lambda: V.ipe(r(5, 3), r(5, 3)),
    "sh0": lambda: V.sh_basis(r(5, 3), 0),
    "sh1": lambda: V.sh_basis(r(5, 3)),
    "hash": lambda: V.hash_lookup(r(64, 2), r(5, 3), 8),
    "hash_b": lambda: V.hash_lookup_batched(r(64, 2), r(5, 3), 8),
    "alphas": lambda: V.alphas(r(4, 6), r(4, 6)),
    "composite": lambda: V.composite(r(4, 6, 3), V.alphas_capped(r(4, 6), r(4, 6)), r(4, 6)),
    "over": lambda: V.over(r(4, 3), r(4)),
    "packed_sum": lambda: V.packed_sum(r(6, 3), torch.tensor([0, 0, 1, 1, 1, 2], device=D), 3),
    "packed_last": lambda: V.packed_last(r(6, 3), counts()),
    "packed_mean": lambda: V.packed_mean(r(6, 3), counts()),
    "distortion": lambda: V.distortion(r(4, 6), r(4, 6)) + V.tv(r(3, 3, 3)),
    "turntable": lambda: V.turntable(pose()),
    "spiral": lambda: V.spiral(r(3, 4, 4)),
    "occ_update": lambda: V.Occupancy(4).to(D).update(lambda x: x.norm(dim=-1)),
    "occ_some": lambda: V.Occupancy(4).to(D).update_some(lambda x: x.norm(dim=-1)),
    "render": lambda: V.render_chunks(V.Field().to(D), rays(), grid=V.Occupancy(4).to(D)),
    "psnr": lambda: V.chunked_psnr(V.Field().to(D), rays(), r(6, 3)),
}
