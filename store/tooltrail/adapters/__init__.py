"""Records what agent frameworks run: one module for each framework, by its own extension point.

Each needs its framework, which an extra brings: `pip install 'tooltrail[langchain]'`.
"""
