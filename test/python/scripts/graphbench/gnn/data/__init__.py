from . import synthetic as DATASETS
