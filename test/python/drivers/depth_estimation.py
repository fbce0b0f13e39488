import torch
import depth_estimation as de

DEV = torch.device("cuda")
CFG = de.DepthConfig()


def _image(channels=3):
    return torch.rand(2, channels, CFG.height, CFG.width, device=DEV)


def _depth():
    return 1 + 5 * torch.rand(2, 1, CFG.height, CFG.width, device=DEV)


def _k():
    return de.default_intrinsics(CFG, 2).to(DEV)


def _pose():
    return torch.eye(4, device=DEV).repeat(2, 1, 1)


def _head(cls):
    return cls(CFG).to(DEV)


def drive_backproject():
    de.BackProjection(CFG).to(DEV)(_depth(), torch.inverse(_k()))


def drive_cropped():
    de.CroppedBackProjection(CFG).to(DEV)(_depth(), torch.inverse(_k()))


def drive_synthesis():
    de.ViewSynthesis(CFG).to(DEV)(_image(), _image(1), _k(), _pose())


def drive_pose_inverted():
    de.pose_matrix(torch.rand(2, 3, device=DEV), torch.rand(2, 3, device=DEV), invert=True)


def drive_pose():
    de.pose_matrix(torch.rand(2, 3, device=DEV), torch.rand(2, 3, device=DEV))


def drive_sigmoid():
    _head(de.SigmoidHead)(_image(4))


def drive_uniform():
    _head(de.UniformBinsHead)(_image(4))


def drive_adaptive():
    _head(de.AdaptiveBinsHead)(_image(4)).sum().backward()


def drive_ordinal():
    _head(de.OrdinalHead)(_image(4))


def drive_ordinal_loss():
    _head(de.OrdinalHead).loss(_image(4), _depth())


def drive_sweep():
    _head(de.PlaneSweep)(_image(), _image(), _k(), _pose())


def drive_sweep_expected():
    sweep = _head(de.PlaneSweep)
    sweep.expected_plane(sweep(_image(), _image(), _k(), _pose()))


def drive_stereo():
    _head(de.StereoMatcher)(_image(), _image()).mean().backward()


def drive_warp():
    de.warp_right_to_left(_image(), _image(1))


def drive_photometric():
    de.PhotometricLoss(CFG, automask=False).to(DEV)([_image()], _image(), [_image()])


def drive_automask():
    de.PhotometricLoss(CFG).to(DEV)([_image()], _image(), [_image()])


def drive_smooth():
    de.SmoothnessLoss()(_image(1), _image())


def drive_sobel():
    de.SobelLoss()(_depth(), _depth())


def drive_normals():
    de.VirtualNormalLoss()(torch.rand(2, 3, 40, device=DEV), torch.rand(2, 3, 40, device=DEV))


def drive_align():
    de.ScaleShiftAligner()(_depth(), _depth(), _depth() > 2)


def drive_align_ridge():
    de.ScaleShiftAligner(ridge=1e-3)(_depth(), _depth(), _depth() > 2)


def drive_running():
    scale = de.RunningScale()
    for _ in range(3):
        scale.update(_depth(), _depth())
    scale.apply(_depth())


def drive_running_camera():
    scale = de.RunningScale(per_camera=2)
    for camera in (0, 1, 1):
        scale.update_camera(camera, _depth(), _depth())


def drive_running_apply():
    scale = de.RunningScale(per_camera=2)
    scale.update_camera(0, _depth(), _depth())
    scale.apply(_depth())


def drive_evaluate():
    evaluator = de.DepthEvaluator(CFG)
    evaluator.update(_depth(), _depth())
    evaluator.summary()


def drive_evaluate_crop():
    de.DepthEvaluator(CFG, crop=(2, 8, 1, 11)).update(_depth(), _depth())


def drive_evaluate_median():
    de.DepthEvaluator(CFG, median_scaling=True).update(_depth(), _depth())
