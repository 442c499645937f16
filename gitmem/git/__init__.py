"""Git: the only package that runs git or reads its files.

It may import text and the modules beside the packages.
"""
