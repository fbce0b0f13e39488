import torch
import structures as S


def drive_ImageList():
    il = S.ImageList.from_tensors([torch.rand(3, 4, 5).cuda(), torch.rand(3, 6, 2).cuda()], 4)
    il.tensor[:, 0][il.masks()].mean()
    il.to("cuda:1").masks()


def drive_RotatedBoxes():
    b = S.RotatedBoxes(torch.rand(2, 5)).to("cuda")
    b.normalize_angles()
    b.clone().corners()


def drive_Meshes():
    v, f = torch.rand(4, 3), torch.tensor([[0, 1, 2], [1, 2, 3]])
    m = S.Meshes([v, v], [f, f]).to("cuda")
    m.vertex_normals()
    m.face_to_mesh()
    m.offset_by_mesh(torch.rand(2, 3).cuda())


def drive_points_to_voxels():
    S.points_to_voxels(torch.rand(10, 3).cuda(), .3)
    S.points_to_voxels(torch.rand(10, 3).cuda(), .3, torch.zeros(3))


def drive_paste_masks():
    m, b = torch.rand(2, 3, 3), torch.tensor([[0., 0, 4, 4], [1, 1, 3, 3]])
    S.paste_masks(m.cuda(), b.cuda(), (5, 5))
    S.paste_masks(m.to("cuda:1"), b.to("cuda:1"), (5, 5))


def drive_RaggedBatch():
    a = S.RaggedBatch(torch.rand(2), torch.rand(3)).to("cuda")
    d, m = S.RaggedBatch.chain(a, a).dense()
    (d * m).sum()
    a.mean()
