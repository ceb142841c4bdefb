// Package testrunner runs the tests of a package: it compares its test cases with fixtures, and
// checks its objects against schemas.
//
//	folder/.test-fixtures/<case>/                     of the root
//	folder/components/<name>/.test-fixtures/<case>/   of a component
//
// A fixture folder has the rendered templates of one case, compared as text. Unlike in Package
// Operator, fixtures are written only on request: a test that records its own expectations cannot
// fail. All files are within the folder of the package.
package testrunner
