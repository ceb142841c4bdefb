// Package lint finds mistakes in packages that are valid.
//
//	files ─► loader.Inspect ─► one case per test case and component ─► rules ─► findings
//
// A rule checks the objects of one case with the manifest. An error fails or does harm in
// a cluster, a warning later or under load, an info makes a package better. The same
// files give the same findings in the same order.
package lint
