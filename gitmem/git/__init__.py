"""Git: the only package that runs git or reads its files.

May import text and the modules beside the packages.
"""
