// Package lint finds mistakes in packages that are valid.
//
//	files ─► loader.Inspect ─► one case per test case and component ─► rules ─► findings
//
// A rule checks the objects of one case along with the manifest. An error fails or does harm in a
// cluster, a warning does so later or under load, and an info improves a package. The same files
// give the same findings in the same order.
package lint
