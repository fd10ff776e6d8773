"""A council: models fitted to a cohort's own rows, whose predictions are blended with the pretrained model's."""
