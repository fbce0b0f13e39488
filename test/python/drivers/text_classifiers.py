import numpy as np
import torch
import text_classifiers as tc

DEV = torch.device("cuda")


def _ids(length=8):
    return torch.randint(2, 60, (5, length), device=DEV)


def _labels():
    return torch.randint(0, 4, (5,), device=DEV)


def _logits():
    return torch.randn(5, 4, device=DEV, requires_grad=True)


def _model(**options):
    return tc.build_classifier(tc.ClassifierConfig(**options))


def drive_cnn():
    _model()(_ids()).sum().backward()


def drive_cnn_short():
    _model()(_ids(3))


def drive_dropout():
    _model(word_dropout=0.3)(_ids())


def drive_dropout_eval():
    _model(word_dropout=0.3).eval()(_ids())


def drive_gru():
    _model(encoder="gru")(_ids())


def drive_gru_sequence():
    _model(encoder="gru_sequence")(_ids())


def drive_attention():
    _model(encoder="attention")(_ids())


def drive_bucketed():
    _model(encoder="bucketed_attention")(_ids())


def drive_ngram():
    tc.NgramBag().to(DEV)(_ids())


def drive_predict():
    vocab = tc.Vocabulary(["good", "bad", "film", "plot", "very", "a"])
    batch = tc.TextCollator(vocab)([("a very good film plot film", 1), ("a bad film plot film bad plot", 0)])
    _model(encoder="gru").predict(batch).tolist()


def drive_calibrate():
    _model().calibrate(_ids(), _labels())


def drive_multihead():
    _model(head_names=("topic", "tone"))(_ids(), task="tone")


def drive_multihead_default():
    _model(head_names=("topic", "tone"))(_ids())


def drive_groups():
    _model(label_tree={0: [0, 1], 1: [2, 3]}).group_scores(_ids())


def drive_best_leaf():
    _model(label_tree={0: [0, 1], 1: [2, 3]}).best_leaf(_ids(), 1)


def drive_ensemble():
    tc.Ensemble([_model(), _model(encoder="gru")])(_ids())


def drive_ensemble_votes():
    tc.Ensemble([_model(), _model(encoder="gru")], votes=[1.0, 2.0])(_ids())


def drive_focal():
    tc.FocalLoss(4).to(DEV)(_logits(), _labels()).backward()


def drive_balanced():
    tc.ClassBalancedLoss(np.array([5, 9, 2, 30])).to(DEV)(_logits(), _labels()).backward()


def drive_smoothing():
    tc.LabelSmoothing()(_logits(), _labels()).backward()


def drive_soft():
    tc.SoftLabelLoss(4).to(DEV)(_logits(), _labels())


def drive_confusion():
    tc.ConfusionMatrix(4).update(_logits(), _labels())


def drive_confusion_batch():
    matrix = tc.ConfusionMatrix(4)
    matrix.update_from_batch(_logits(), _labels())
    matrix.f1()


def drive_threshold():
    tc.ThresholdTuner().best_common(_logits(), torch.ones(5, 4, device=DEV))


def drive_threshold_classes():
    tc.ThresholdTuner().best_for_classes(_logits(), torch.ones(5, 4, device=DEV))
