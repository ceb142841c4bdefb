package applies_test

// known are the rows of TestTable that differ today. The list only shrinks.
var known = []string{
	"a port number by hand",
	"a port number by hand, before an upgrade",
	"a protocol by hand",
	"a container port by hand",
	"a variable by hand",
	"the other form of a variable by hand, before it is stated",
	"a probe handler by hand",
	"a budget by hand",
	"a headless Service",
	"two families of addresses",
	"a protocol that is left out",
	"a protocol that is left out, while the engine is away",
	"an immutable field that leaves, by kubectl create",
	"an immutable field that leaves, by kubectl apply",
	"an immutable field that leaves, by kubectl apply --server-side",
	"an immutable field that leaves, by helm",
	"replicas of a custom resource",
}
