import torch

import geosignal as g

D = "cuda:0"
FACES = [[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]]


def r(*shape):
    return torch.randn(*shape, device=D)


def rotations(n=2):
    return g.from_euler(r(n, 3))


def quaternions(n=3):
    return g.normalize(r(n, 4))


def mesh():
    return g.Mesh(torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], device=D), FACES)


def beam():
    return g.Beamformer(), torch.tensor([1.0, 0.0, 0.0], device=D)


CALLS = {
    "safe_divide": lambda: g.safe_divide(r(3), r(3)),
    "angle": lambda: g.angle_between(r(2, 3), r(2, 3)),
    "axes_order": lambda: g.to_axes_order(r(2, 3)),
    "axes_order_indexed": lambda: g.to_axes_order_indexed(r(2, 3)),
    "so3_exp": lambda: g.so3_exp(r(2, 3)),
    "so3_exp_like": lambda: g.so3_log(g.so3_exp_like(r(2, 3))),
    "conjugate": lambda: g.quaternion_conjugate(quaternions()),
    "rotate": lambda: g.quaternion_rotate(quaternions(), r(3, 3)),
    "augment": lambda: g.augment_rotations(r(2, 5, 3)),
    "augment_like": lambda: g.augment_rotations_like(r(2, 5, 3)),
    "euler": lambda: rotations(),
    "look_at": lambda: g.look_at(r(2, 3)),
    "turntable": lambda: g.turntable(r(3)),
    "rigid": lambda: g.Rigid(rotations(), r(2, 3)).compose(g.Rigid.identity(2, D)).invert().to_matrix(),
    "rigid_rotation": lambda: g.Rigid(rotations()).apply(r(2, 3)),
    "rigid_rows": lambda: g.Rigid(rotations(), r(2, 3)).to_rows(),
    "shifted": lambda: g.shifted(r(2, 3), r(2, 3)),
    "project": lambda: g.Pinhole().project(r(4, 3)),
    "unproject": lambda: g.Pinhole().unproject(r(4, 2), r(4)),
    "world_rays": lambda: g.Pinhole().world_rays(rotations(1)[0]),
    "depth": lambda: g.Pinhole().depth_to_points(r(8, 8)),
    "visible": lambda: g.Pinhole().visible(r(4, 3)),
    "distorted": lambda: g.Pinhole(distortion=[0.1, 0.01]).distorted(r(4, 2)),
    "epipolar": lambda: g.epipolar_distance(r(3, 3), r(4, 2), r(4, 2)),
    "homography": lambda: g.homography_error(r(4, 2), r(4, 2)),
    "homography_like": lambda: g.homography_error_like(r(4, 2), r(4, 2)),
    "farthest": lambda: g.farthest_points(r(6, 3), 3),
    "farthest_distances": lambda: g.farthest_distances(r(6, 3), 3),
    "chamfer": lambda: g.chamfer(r(6, 3), r(5, 3)),
    "kabsch": lambda: g.kabsch(r(6, 3), r(6, 3)).trans,
    "procrustes": lambda: g.procrustes_scale(r(6, 3), r(6, 3)),
    "icp": lambda: g.iterative_closest(r(6, 3), r(7, 3)),
    "mesh": lambda: (mesh().area(), mesh().vertex_normals(), mesh().edge_lengths()),
    "mesh_areas": lambda: mesh().vertex_areas(),
    "mesh_smoothed": lambda: mesh().smoothed(),
    "voxel_ids": lambda: g.voxel_ids(r(6, 3)),
    "voxel_means": lambda: g.voxel_means(r(6, 3)),
    "cells": lambda: g.neighbour_cells(torch.zeros(2, 3, dtype=torch.long, device=D)),
    "cells_each": lambda: g.neighbour_cells_each(torch.zeros(2, 3, dtype=torch.long, device=D)),
    "harmonics": lambda: g.spherical_harmonics(r(4, 3)),
    "barycentric": lambda: g.barycentric(r(4, 3), r(4, 3), r(4, 3), r(4, 3)),
    "spectrogram": lambda: g.spectrogram(r(2, 64)),
    "frames": lambda: g.frames(r(2, 64)),
    "overlap": lambda: g.overlap_add(r(2, 5, 16)),
    "overlap_normalized": lambda: g.overlap_normalized(r(2, 5, 16)),
    "round_trip": lambda: g.round_trip(r(2, 64)),
    "dct": lambda: g.dct(r(2, 8)),
    "dct_denoise": lambda: g.dct_denoise(r(2, 8)),
    "haar": lambda: g.haar(r(2, 8)),
    "haar_bank": lambda: g.haar_bank(r(2, 8)),
    "lowpass": lambda: g.lowpass(r(2, 3, 32)),
    "highpass": lambda: g.highpass(r(2, 3, 32)),
    "preemphasis": lambda: g.preemphasis(r(2, 32), torch.tensor(0.9)),
    "median": lambda: g.median(r(2, 32)),
    "savitzky": lambda: g.savitzky(r(2, 32)),
    "exponential": lambda: g.exponential(r(2, 8)),
    "leaky": lambda: g.leaky(r(2, 8)),
    "biquad": lambda: g.Biquad()(r(2, 8)),
    "biquad_response": lambda: g.Biquad().response(r(4)),
    "moving": lambda: (lambda s: (s.update(r(4, 3)), s.update(r(4, 3))))(g.MovingStats()),
    "linear": lambda: g.resample_linear(r(2, 8), 12),
    "cubic": lambda: g.resample_cubic(r(2, 8), 12),
    "lag": lambda: g.pitch_lag(r(2, 32)),
    "frequency": lambda: g.pitch_frequency(r(2, 32)),
    "frequency_beside": lambda: g.pitch_frequency_beside(r(2, 32)),
    "delay": lambda: g.group_delay_phases(r(2, 32), 1.5),
    "bands": lambda: g.band_energies(r(2, 32)),
    "centroid": lambda: g.spectral_centroid(r(2, 32)),
    "beam": lambda: (lambda b, d: b(torch.randn(2, 4, 2, 5, dtype=torch.cfloat, device=D), d))(*beam()),
    "beam_power": lambda: (lambda b, d: b.power(torch.randn(2, 4, 2, 5, dtype=torch.cfloat, device=D), d[None]))(*beam()),
    "beam_response": lambda: (lambda b, d: b.response(d, r(3)))(*beam()),
    "log_mel": lambda: g.log_mel(r(2, 64)),
    "mel_centres": lambda: g.mel_centres(r(2, 64)),
}
