"""The encoders and their heads: tensors in, tensors out, and a memory that is passed around as a value."""
