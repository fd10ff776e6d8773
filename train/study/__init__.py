"""What measures models and methods: the study's experiments, comparisons, choices and benchmarks."""
