import torch
import protein_folding as P

DEVICE = torch.device("cuda:0")
TEXT = "ARNDCQ"
CONFIG = P.FoldConfig()


def setup():
    torch.manual_seed(0)
    return P.FoldingModel(CONFIG).to(DEVICE), P.FeaturePipeline(DEVICE)


def output():
    model, pipeline = setup()
    features = pipeline.build(TEXT)
    return model, features, model(features)


def pair():
    return torch.randn(4, 4, 8, device=DEVICE), torch.ones(4, 4, device=DEVICE)


def truth():
    return P.Rigid.from_points(*(torch.randn(6, 3, device=DEVICE) for _ in range(3)))


def drive_pipeline_cpu():
    return P.FeaturePipeline().build(TEXT)["msa"].numpy()


def drive_forward():
    return output()[2]["positions"].sum().backward()


def drive_fold():
    model, pipeline = setup()
    return model.fold(TEXT, pipeline)


def drive_score_tokens():
    model, pipeline = setup()
    model.score_tokens(pipeline.build(TEXT), pipeline)


def drive_relative_hard():
    model, pipeline = setup()
    model.relative.hard(pipeline.build(TEXT)["residue_index"])


def drive_transition():
    return P.ChunkedTransition(8, 2).to(DEVICE)(pair()[0])


def drive_transition_offload():
    with torch.no_grad():
        return P.ChunkedTransition(8, 2, offload=True).to(DEVICE)(pair()[0]).numpy()


def drive_transition_residual():
    with torch.no_grad():
        return P.ChunkedTransition(8, 2, offload=True).to(DEVICE).residual(pair()[0])


def drive_pipeline_stack():
    return P.PairStack(CONFIG).pipeline()(*pair())


def drive_drift():
    return P.PairStack(CONFIG).pipeline(1).drift(*pair())


def drive_warm():
    model, features, out = output()
    model.structure.remember(out["rigid"])
    return model.structure.warm_forward(out["single"], out["pair"], features["mask"])


def drive_refine():
    model, _, out = output()
    model.structure.remember(out["rigid"])
    model.structure.refine_only(out["rigid"])


def drive_refine_fresh():
    model, _, out = output()
    return model.structure.refine_only(out["rigid"])


def drive_backbone():
    model, _, out = output()
    return model.structure.backbone(out["rigid"])


def drive_center_atoms():
    model, _, out = output()
    return model.structure.center_atoms(out["rigid"])


def drive_distogram():
    model, features, out = output()
    return model.distogram.loss(out["pair"], truth().translation, features["mask"]).backward()


def drive_expected():
    model, _, out = output()
    return model.distogram.expected(out["pair"])


def drive_contacts():
    model, _, out = output()
    return model.distogram.contact_report(out["pair"])


def drive_fape():
    return P.FrameAlignedError()(output()[2]["rigid"], truth())


def drive_fape_by_type():
    _, features, out = output()
    return P.FrameAlignedError(by_type=True).to(DEVICE)(out["rigid"], truth(), features["aatype"])


def drive_superpose():
    return P.superpose(truth().translation, truth().translation)


def drive_rotate_only():
    return P.rotate_only(truth().translation, truth().translation)


def tracker():
    _, _, out = output()
    return P.ConfidenceTracker(16).offer(out["single"], out["positions"])


def drive_tracker_lines():
    return tracker().lines()


def drive_tracker_array():
    return tracker().as_array()
