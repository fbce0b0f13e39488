"""Serve small models: a registry, a session for each model, and heads that learn from few examples."""
from hub.fewshot import MatchingHead, PrototypeHead
from hub.registry import available, create, register
from hub.session import Session

__all__ = ["MatchingHead", "PrototypeHead", "Session", "available", "create", "register"]
