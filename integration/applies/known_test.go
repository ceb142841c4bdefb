package applies_test

// known are the rows of the table that fail, until the engine is mended. It has to become empty.
var known = []string{
	"a headless Service, by kubectl create",
	"a headless Service, by kubectl apply",
	"a headless Service, by kubectl apply --server-side",
	"an empty list, by kubectl apply --server-side",
	"a headless Service, by helm",
}
