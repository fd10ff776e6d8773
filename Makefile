# Every target is a script that also runs by itself, without make.
.PHONY: run test coverage test-slow reliability pictures lint types wheel clean

run:            ## set up what is missing and open the app
	scripts/run

test:           ## set up what is missing and run all tests but the long ones
	scripts/test

coverage:       ## which lines the tests reach; it takes much longer, since every line is counted
	scripts/test -n 2 --dist loadfile --cov --cov-report=term

test-slow:      ## the tests that take minutes
	scripts/test -m slow

reliability:    ## the long checks of what must survive; writes docs/results/reliability.md
	scripts/test -m reliability -s --write-figures

pictures:       ## draw the user guide's pictures again
	scripts/test tests/e2e/test_pictures.py -m slow --write-pictures

lint:           ## style
	scripts/lint

types:          ## static types
	scripts/types

wheel:          ## build the wheel, install it in a fresh environment, ask it one question
	scripts/check_wheel

clean:          ## remove the environment and everything built
	rm -rf .venv build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis .coverage htmlcov
