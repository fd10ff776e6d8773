"""Jobs of `python -m train`: what makes models, and in `train.study` what measures them."""
