// Package lint looks for mistakes in packages that are valid.
//
//	files ─► loader.Inspect ─► one case per test case and component ─► rules ─► findings
//
// A rule has a fixed name, a level and a sentence, and judges one case: the
// objects as they would be rolled out, with the manifest. What several cases
// find is reported once. An error is what fails or hurts in a cluster, a warning
// what does so later or under load, an info what makes a package better.
//
// Rules are pure: the same files give the same findings in the same order. They
// are described in docs/lint.md, which a test compares with them.
package lint
