// Builds the Kubo that the tests run: `make kubo`.
//
// A module of our own rather than `go install …@version`, because it pins every hash in go.sum and
// because one dependency has to be raised for Go 1.26 to compile it.
module capdex/kubo

go 1.25.0

require github.com/ipfs/kubo v0.39.0

require github.com/cockroachdb/swiss v0.0.0-20251224182025-b0f6560f979b // indirect
