"""overrides of the globals of train.py from the command line, --key=value"""
import sys
from ast import literal_eval


def apply(config):
    for arg in sys.argv[1:]:
        assert arg.startswith("--")
        key, val = arg[2:].split("=")
        if key not in config:
            raise ValueError(f"Unknown config key: {key}")
        try:
            val = literal_eval(val)
        except (SyntaxError, ValueError):
            pass
        config[key] = val
    return config
