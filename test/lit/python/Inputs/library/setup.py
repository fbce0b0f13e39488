from setuptools import setup

setup(name="pack")
