from .maml import AnilLearner as Learner  # noqa: F401
