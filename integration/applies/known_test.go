package applies_test

// known are the rows of the table that fail, until the engine is mended. It has to become empty.
var known = []string{
	"a reference of others stays when a volume gives way",
	"an empty list becomes a map",
	"a key in another form while the engine is away",
	"an immutable field that leaves with others, by kubectl create",
	"quotas beside an immutable field, by kubectl create",
	"a headless Service, by kubectl create",
	"an immutable field that leaves with others, by kubectl apply",
	"quotas beside an immutable field, by kubectl apply",
	"a headless Service, by kubectl apply",
	"an immutable field that leaves with others, by kubectl apply --server-side",
	"quotas beside an immutable field, by kubectl apply --server-side",
	"a headless Service, by kubectl apply --server-side",
	"an empty list, by kubectl apply --server-side",
	"an immutable field that leaves with others, by helm",
	"quotas beside an immutable field, by helm",
	"a headless Service, by helm",
}
