"""The verbs: one file a noun, a function a verb. Values in, outcome values out."""
