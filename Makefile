# Two commands do everything: `make demo` and `make test`. Both install what they lack (Debian, root).
.PHONY: setup test lint demo bench
setup:
	@scripts/setup

test: setup lint
	cargo test --workspace

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo check -p duolog-log-core -p duolog-coordinator --no-default-features
